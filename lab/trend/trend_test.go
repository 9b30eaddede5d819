package trend_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/trend"
	"github.com/tarehq/tare/lab/verdict"
)

// analyse makes the n-th day's run, in which api takes factor times the control's CPU.
func analyse(t *testing.T, n int, control string, factor float64) *verdict.Analysis {
	t.Helper()
	s := study.Study{Name: "ab", Control: control, Threshold: 0.01, Arms: []study.Arm{{Name: control}, {Name: "api"}},
		Workloads: []study.Workload{{Name: "load", Schedule: "closed"}}, Primary: study.Primary{Metric: "cpu_per_request", Workload: "load"}}
	r := &record.Run{Manifest: record.Manifest{Schema: record.Schema, ID: fmt.Sprintf("run-%d", n), Study: s, Seed: 7, Outcome: "decided",
		Started: time.Date(2026, 1, n, 15, 0, 0, 0, time.UTC), Programs: map[string]record.Program{control: {BuildID: fmt.Sprintf("%064d", n)}, "api": {BuildID: "b"}}}}
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	day := math.Exp(rng.NormFloat64()) // machines differ: the ratio does not
	for block := range 12 {
		for arm, f := range map[string]float64{control: 1, "api": factor} {
			r.Trials = append(r.Trials, record.Trial{Block: block, Arm: arm, Workload: "load", Requests: 20_000, Steady: true, Elapsed: time.Second,
				Metrics: map[string]float64{"cpu_per_request": 30_000 * day * f * math.Exp(0.003*rng.NormFloat64()), "errors": 0}})
		}
	}
	a, err := verdict.Analyse(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestNew(t *testing.T) {
	other := analyse(t, 9, "blog@main", 1)
	other.Manifest.Study.Name = "other"
	runs := []*verdict.Analysis{analyse(t, 3, "api@c3", 1.1), other, analyse(t, 1, "api@c1", 1), analyse(t, 2, "api@c2", 1.05), analyse(t, 4, "blog@c1", 1)}
	got, err := trend.New(runs, trend.Options{Study: "ab"})
	if err != nil || got.Control != "blog" || len(got.Points) != 1 || len(got.LeftOut) != 3 || !strings.Contains(got.LeftOut[0].Why, "its control is api@c1") {
		t.Fatalf("got %+v, %v, want the newest run's control, and the others left out", got, err)
	}
	if got, err = trend.New(runs[:4], trend.Options{Study: "ab"}); err != nil {
		t.Fatal(err)
	}
	if got.Workload != "load" || got.Name != "cpu_per_request" || len(got.Points) != 3 || len(got.LeftOut) != 0 {
		t.Fatalf("got %+v, want the primary metric of three runs", got)
	}
	for i, want := range []float64{0, 0.05, 0.1} {
		p := got.Points[i]
		if p.Run != fmt.Sprintf("run-%d", i+1) || math.Abs(p.Change.Value-want) > 0.005 || !p.Change.Interval.Contains(want) || p.Control != fmt.Sprintf("api@c%d", i+1) || p.Build != "b" {
			t.Errorf("point %d is %+v, want run %d with a change of %g", i, p, i+1, want)
		}
	}
	if text := got.Headline(); !strings.HasPrefix(text, "CPU per request: api +") || !strings.Contains(text, ", 2 runs earlier ") || !strings.Contains(text, "against api@c3") {
		t.Errorf("the headline is %q", text)
	}
	for name, tt := range map[string]struct {
		o    trend.Options
		want string
	}{
		"study":    {trend.Options{Study: "none"}, `no run of study "none"`},
		"metric":   {trend.Options{Study: "ab", Metric: "speed"}, `no metric is called "speed"`},
		"workload": {trend.Options{Study: "ab", Workload: "gone"}, "no trial of the workload counts"},
		"share":    {trend.Options{Study: "ab", Metric: "errors"}, "by difference, not by ratio"},
	} {
		if _, err := trend.New(runs, tt.o); !errors.Is(err, trend.ErrNothing) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

// A run that was interrupted before it compared anything does not choose the metric.
func TestNewestCompared(t *testing.T) {
	begun := analyse(t, 3, "api@c3", 1)
	begun.Manifest.Study.Primary.Metric = "startup"
	got, err := trend.New([]*verdict.Analysis{analyse(t, 1, "api@c1", 1), analyse(t, 2, "api@c2", 1), begun}, trend.Options{Study: "ab"})
	if err != nil || got.Name != "cpu_per_request" {
		t.Errorf("got %+v, %v, want the CPU per request of the second", got, err)
	}
}

// A trend is of one load: what was asked for otherwise is left out, with the reason. A token or
// another content makes no other load.
func TestOtherLoads(t *testing.T) {
	var runs []*verdict.Analysis
	for n, path := range []string{"/a", "/b", "/b", "/b"} {
		a := analyse(t, n+1, "api@main", 1)
		w := &a.Manifest.Study.Workloads[0]
		w.Targets = []study.Target{{Path: path, Header: map[string]string{"Authorization": fmt.Sprint(n)}, Verify: study.Verify{SHA256: fmt.Sprint(n)}}}
		if n == 1 {
			w.Connections = 256
		}
		runs = append(runs, a)
	}
	got, err := trend.New(runs, trend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []trend.LeftOut{{Run: "run-1", Why: "its workload asks for other requests"}, {Run: "run-2", Why: "its workload has another schedule, rate or number of connections"}}
	if len(got.Points) != 2 || !slices.Equal(got.LeftOut, want) {
		t.Errorf("got %d points, left out %v; want 2 and %v", len(got.Points), got.LeftOut, want)
	}
}

// Arms that only a commit or a version tells apart keep it.
func TestArmsOfOneName(t *testing.T) {
	a := analyse(t, 1, "api@main", 1.1)
	a.Manifest.Study.Arms = []study.Arm{{Name: "api@main"}, {Name: "api@v1"}, {Name: "api@v2"}}
	m := a.Workloads[0].Metric("cpu_per_request")
	second := m.Compared[0]
	m.Compared[0].Arm, second.Arm = "api@v1", "api@v2"
	m.Compared = append(m.Compared, second)
	got, err := trend.New([]*verdict.Analysis{a}, trend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Arms, []string{"api@v1", "api@v2"}) || len(got.Of("api@v1")) != 1 || len(got.Of("api@v2")) != 1 {
		t.Errorf("got the arms %q and the points %+v, want one for each of two", got.Arms, got.Points)
	}
}

// TestPage wants the figures in every form, and the drawing in HTML.
func TestPage(t *testing.T) {
	var runs []*verdict.Analysis
	for n := range 9 {
		runs = append(runs, analyse(t, n+1, fmt.Sprintf("api@c%d", n+1), 1+float64(n)/50))
	}
	tr, err := trend.New(runs, trend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := tr.Page()
	var html, markdown, text strings.Builder
	if err := errors.Join(doc.HTML(&html, p, doc.HTMLOptions{}), doc.Markdown(&markdown, p), doc.Text(&text, p, doc.TextOptions{Width: 100})); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"HTML": html.String(), "Markdown": markdown.String(), "text": text.String()} {
		if strings.Index(out, "run-9") > strings.Index(out, "run-1") || !strings.Contains(out, "more CPU") {
			t.Errorf("%s: want the newest run first:\n%s", name, out)
		}
	}
	if got := strings.Count(html.String(), `class="curve c1 dot"`); got != 1 || !strings.Contains(html.String(), ">9 Jan<") || strings.Contains(markdown.String(), "<svg") {
		t.Errorf("%d arms are drawn in HTML, want 1, and nothing in Markdown", got)
	}
	if out, err := json.Marshal(tr); err != nil || !strings.Contains(string(out), `"change":{"value":`) {
		t.Errorf("JSON: %s, %v", out, err)
	}
}
