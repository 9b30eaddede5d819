package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// page is a report read back.
type page struct {
	size  int
	nodes []*html.Node // elements, in order
	text  string       // what a reader sees, white space folded
}

func render(t *testing.T, r *record.Run, a *verdict.Analysis) page {
	t.Helper()
	var b bytes.Buffer
	if err := report.HTML(&b, r, a); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	p := page{size: b.Len()}
	var text strings.Builder
	for n := range root.Descendants() {
		switch {
		case n.Type == html.ElementNode:
			p.nodes = append(p.nodes, n)
			text.WriteByte(' ')
		case n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "style":
			text.WriteString(n.Data)
		}
	}
	p.text = fold(text.String())
	return p
}

func fold(s string) string { return strings.Join(strings.Fields(s), " ") }

func (p page) all(name string) []*html.Node {
	return slices.DeleteFunc(slices.Clone(p.nodes), func(n *html.Node) bool { return n.Data != name })
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// holds checks that a reader finds each text.
func (p page) holds(t *testing.T, what string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.text, fold(text)) {
			t.Errorf("%s: the report does not hold %q", what, text)
		}
	}
}

func TestHTMLHoldsTheRun(t *testing.T) {
	r := synthetic(1)
	a := analyse(t, r)
	p := render(t, r, a)
	if h := p.all("h1"); len(h) != 1 || fold(h[0].FirstChild.Data) != fold(a.Headline) {
		t.Errorf("got %d h1, want one with %q", len(h), a.Headline)
	}
	for _, w := range a.Warnings {
		p.holds(t, "warning", w.Error())
	}
	for _, i := range a.Trials.Invalid {
		p.holds(t, "invalid trial", i.Reason)
	}
	for _, c := range a.Claims {
		p.holds(t, "claim", c.ID, string(c.Verdict), c.Sentence)
		for i, k := range c.Checks {
			says := k.Check.Says
			if i == 0 && len(c.Checks) > 1 {
				says = "Headline: " + says
			}
			p.holds(t, "check", says)
		}
	}
	for _, g := range a.Goals {
		p.holds(t, "goal", g.Says, string(g.Outcome), g.Tally())
		for _, k := range g.Checks {
			p.holds(t, "check of a goal", k.Metric.Title, string(k.Outcome()))
		}
	}
	for _, f := range r.Manifest.Env {
		p.holds(t, "environment", f.Name, f.Value, f.Remedy)
	}
	for _, arm := range r.Manifest.Study.Arms {
		p.holds(t, "arm", arm.Name, arm.Title)
	}
	for _, w := range a.Workloads {
		for _, m := range w.Metrics {
			holdsMetric(t, p, &m)
		}
	}
	p.holds(t, "trust", r.Manifest.SelfTest, "seed 1", "noise floor", "nginx is not installed", "b1d", strings.Join(r.Manifest.Command, " "), r.Manifest.ID)
	p.holds(t, "resolution", "Too small for the load")
	p.holds(t, "steps", "a step in process (none, one, three; 99 % intervals): +444 ns (+377 ns to +492 ns), +2.50 allocations (+2.50 to +2.50)")
}

// holdsMetric checks every median and every effect; the intervals are those of
// the metrics drawn.
func holdsMetric(t *testing.T, p page, m *verdict.Metric) {
	t.Helper()
	if m.Withheld != "" {
		p.holds(t, "withheld", m.Withheld)
		return
	}
	for _, l := range m.Levels {
		p.holds(t, m.Name, verdict.Show(m.Metric, l.Median))
	}
	for _, c := range m.Compared {
		if c.Withheld != "" {
			continue
		}
		p.holds(t, m.Name, c.Figure())
		if m.Primary || slices.Contains([]string{"loop_time", "response_p50", "response_p99"}, m.Name) {
			p.holds(t, m.Name+" of "+c.Arm, c.Figure()+" "+c.DecidingRange(), c.Word())
		}
	}
}

// TestHTMLStandsAlone checks that the file loads nothing, and that it is built
// for those who listen to it.
func TestHTMLStandsAlone(t *testing.T) {
	r := large(t, 8)
	p := render(t, r, analyse(t, r))
	ids := map[string]bool{}
	for _, n := range p.nodes {
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("id %q occurs twice", id)
			}
			ids[id] = true
		}
	}
	for _, n := range p.nodes {
		for _, key := range []string{"src", "href", "srcset", "action", "style"} {
			v := attr(n, key)
			if v != "" && v != "data:," && !ids[strings.TrimPrefix(v, "#")] {
				t.Errorf("<%s %s=%q> leads out of the file or nowhere", n.Data, key, v)
			}
		}
		if n.Data == "th" && attr(n, "scope") == "" {
			t.Errorf("a heading of a table has no scope: %s", n.FirstChild.Data)
		}
		if n.Data == "svg" && attr(n, "role") == "img" && (n.FirstChild == nil || n.FirstChild.Data != "title" || n.FirstChild.FirstChild == nil) {
			t.Errorf("a drawing has no title: %v", n.Attr)
		}
	}
	if s := p.all("script"); len(s) != 1 || len(s[0].FirstChild.Data) > 3<<10 {
		t.Errorf("got %d scripts, want one of at most 3 KiB", len(s))
	}
	if css := p.all("style")[0].FirstChild.Data; strings.Contains(css, "url(") || strings.Contains(css, "@import") {
		t.Error("the style sheet loads something")
	}
	p.holds(t, "quantiles", "p50 p90 p95 p99 p99.9", "The arms answered at different rates")
	p.holds(t, "series of few trials", "A thin line a trial")
}

// TestHTMLSize is of the largest shape that ships: eight arms under four
// workloads, profiled.
func TestHTMLSize(t *testing.T) {
	r := recorded(t, layered(), 30)
	profile(r, "net/http", "chi", "gin", "echo", "fiber")
	p := render(t, r, analyse(t, r))
	if p.size >= 500_000 {
		t.Errorf("eight arms, four workloads, 30 blocks, captures of five arms: got %d bytes, want less than 500,000", p.size)
	}
	p.holds(t, "series of many trials", "Shaded: all trials of an arm")
}

// TestHTMLEscapes puts what would break out of text, attributes, style sheet
// and script where a user's text goes.
func TestHTMLEscapes(t *testing.T) {
	const evil = `x"'><script>alert(1)</script><img src=x onerror=alert(2)></style></title></svg>{{.}}&amp;<!--`
	r := synthetic(1)
	m := &r.Manifest
	s := &m.Study
	s.Name, s.Title, s.Question, s.Notes = "name "+evil, "title "+evil, "question "+evil, "notes "+evil
	s.Arms[2].Name, s.Arms[1].Title, s.Workloads[1].Name, s.Workloads[0].Title = "arm "+evil, "arm title "+evil, "workload "+evil, "workload title "+evil
	s.Primary.Arm = ""
	s.Claims[0].ID, s.Claims[0].Checks[0].Says = "claim "+evil, "says "+evil
	m.ID, m.SelfTest, m.Tare, m.Outcome = "id "+evil, "self "+evil, "tare "+evil, "outcome "+evil
	m.Command = []string{"tare", "command " + evil}
	m.LeftOut = map[string]string{"left " + evil: "why " + evil}
	m.Env[0] = record.Fact{Name: "fact " + evil, Value: "value " + evil, Verdict: "verdict " + evil, Remedy: "remedy " + evil}
	m.Programs["one"] = record.Program{Path: "path " + evil, BuildID: "build " + evil, Go: "go " + evil, Modules: map[string]string{"module " + evil: "v"}}
	r.Warnings = append(r.Warnings, errors.New("warning "+evil))
	for i := range r.Trials {
		tr := &r.Trials[i]
		tr.Series = []record.Slice{{AtMs: 0, Answered: 9, P99: 1e5}, {AtMs: 200, Answered: 8, P99: 2e5}}
		switch {
		case tr.Arm == "three":
			tr.Arm = s.Arms[2].Name
		case tr.Workload == "capacity":
			tr.Workload = s.Workloads[1].Name
		}
	}
	r.Trials[0].Invalid = []string{"reason " + evil}
	p := render(t, r, analyse(t, r))
	if n := len(p.all("script")) + len(p.all("style")); n != 2 {
		t.Errorf("got %d scripts and styles, want 2", n)
	}
	if len(p.all("img")) > 0 {
		t.Error("an image got in")
	}
	for _, n := range p.nodes {
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			}
		}
	}
	for _, what := range []string{"name", "title", "question", "notes", "arm", "arm title", "workload", "workload title", "claim", "says",
		"id", "self", "tare", "outcome", "left", "why", "fact", "value", "verdict", "remedy", "path", "build", "go", "module", "warning", "reason"} {
		p.holds(t, "as it was written", what+" "+evil)
	}
	p.holds(t, "as a shell reads it", `tare 'command x"'\''>`)
}

func TestHTMLOfLittle(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*record.Run)
		want   []string
	}{
		{"no trial", func(r *record.Run) { r.Trials = nil }, []string{"Nothing is decided", "no pair of valid trials"}},
		{"no manifest to speak of", func(r *record.Run) { *r = record.Run{} }, []string{"Nothing is decided"}},
		{"no valid trial", func(r *record.Run) {
			for i := range r.Trials {
				r.Trials[i].Invalid = []string{"the arm died"}
				r.Trials[i].Series = []record.Slice{{Answered: 9, P99: 1e5}, {AtMs: 200}, {AtMs: 400, Answered: 8, P99: 3e5}}
			}
		}, []string{"no pair of valid trials", "the arm died", "0 of 16 trials count"}},
		{"histograms lost", func(r *record.Run) {
			for i := range r.Trials {
				r.Trials[i].Hist = "000000"
			}
		}, []string{"Histograms are missing"}},
		{"not finished", func(r *record.Run) { r.Manifest.Outcome, r.Manifest.Ended = "", started.Add(-1) }, []string{"unfinished"}},
		{"a metric of nothing but zeros", func(r *record.Run) {
			for i := range r.Trials {
				r.Trials[i].Metrics["cpu_per_request"] = 0
			}
		}, []string{"no different"}},
		{"effects of many magnitudes", func(r *record.Run) {
			for i := range r.Trials {
				if r.Trials[i].Arm == "three" {
					r.Trials[i].Metrics["cpu_per_request"] = 1e300
				}
			}
		}, []string{"more CPU"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := synthetic(1)
			tc.change(r)
			p := render(t, r, analyse(t, r))
			p.holds(t, tc.name, tc.want...)
			for _, n := range p.all("path") {
				if d := attr(n, "d"); strings.Contains(d, "NaN") || strings.Contains(d, "Inf") {
					t.Errorf("a path leads nowhere: %q", d)
				}
			}
		})
	}
}

// TestHTMLTellsWhatIsTheGenerators leaves quantiles out of one arm's trials, as
// a run does where the generator was late.
func TestHTMLTellsWhatIsTheGenerators(t *testing.T) {
	const said = "the generator’s own lag was more than a tenth"
	r := large(t, 8)
	p := render(t, r, analyse(t, r))
	if strings.Contains(p.text, said) {
		t.Errorf("every trial has its quantiles, yet the report says that %s", said)
	}
	for i := range r.Trials {
		if tr := &r.Trials[i]; tr.Arm == "gin" && tr.Workload == "half" && tr.Block == 3 {
			delete(tr.Metrics, "response_p95")
			delete(tr.Metrics, "response_p99")
			delete(tr.Metrics, "response_p999")
		}
	}
	p = render(t, r, analyse(t, r))
	p.holds(t, "lag", said)
	var rows []string
	for _, n := range p.all("tr") {
		var cells []string
		for c := range n.ChildNodes() {
			if c.FirstChild != nil {
				cells = append(cells, c.FirstChild.Data)
			}
		}
		if len(cells) == 7 && cells[0] == "gin" && !strings.ContainsAny(cells[1], " /") { // arm, requests, five quantiles
			rows = append(rows, strings.Join(cells[2:], " "))
		}
	}
	if len(rows) != 2 || strings.Count(rows[0], "(") != 3 || !strings.Contains(rows[0], "µs (") || strings.Contains(rows[1], "(") {
		t.Errorf("got %q, want the first row in brackets from p95 on and the second row in none", rows)
	}
	if n := slices.IndexFunc(p.all("path"), func(n *html.Node) bool { return attr(n, "class") == "curve c2 beyond" }); n < 0 {
		t.Error("no line is dotted")
	}
}

func TestHTMLOfGenerators(t *testing.T) {
	r := synthetic(1)
	r.Manifest.Study.Kind = study.Generators
	p := render(t, r, analyse(t, r))
	p.holds(t, "generators", "generator's share of its CPUs")
}

func TestHTMLReturnsErrorsOfWriting(t *testing.T) {
	r := synthetic(1)
	if err := report.HTML(&full{4096}, r, analyse(t, r)); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

// TestOneOrderOfArms: a metric that only some arms have, which begins a table,
// leaves the order of columns as it is in the others.
func TestOneOrderOfArms(t *testing.T) {
	r := synthetic(1)
	for _, trial := range r.Trials {
		if trial.Arm == "one" {
			delete(trial.Metrics, "response_p95") // begins a table
			delete(trial.Metrics, "startup")      // and this another
		}
	}
	want := []string{"none", "one", "three", "flattened", "none again"}
	tables := 0
	for _, table := range render(t, r, analyse(t, r)).all("table") {
		if attr(table, "class") != "matrix" {
			continue
		}
		tables++
		var got []string
		for n := range table.Descendants() {
			if attr(n, "scope") == "col" && n.FirstChild.Data != "metric" {
				got = append(got, n.FirstChild.Data)
			}
		}
		order := slices.DeleteFunc(slices.Clone(want), func(arm string) bool { return !slices.Contains(got, arm) })
		if !slices.Equal(got, order) {
			t.Errorf("got columns %q, want %q", got, order)
		}
	}
	if tables < 6 {
		t.Errorf("looked at %d tables, want 6 at least", tables)
	}
}

// TestMedianSaysOfHowMany: beside an effect stands the number of blocks that have the
// control too, and below a median that of its trials where these are more.
func TestMedianSaysOfHowMany(t *testing.T) {
	r := synthetic(1)
	for i := range r.Trials {
		if trial := &r.Trials[i]; trial.Block == 3 && trial.Arm == "none" {
			trial.Invalid = []string{"the generator was late"}
		}
	}
	a := analyse(t, r)
	m := a.Primary()
	trials, blocks := fmt.Sprint(m.Level("one").N), fmt.Sprint(m.Against("one").N)
	if trials == blocks {
		t.Fatalf("the run has %s of both", trials)
	}
	for _, row := range render(t, r, a).all("tr") {
		var cells []string
		for cell := range row.ChildNodes() {
			var text strings.Builder
			for n := range cell.Descendants() {
				if n.Type == html.TextNode {
					text.WriteString(" " + n.Data)
				}
			}
			cells = append(cells, fold(text.String()))
		}
		if cells[0] == "one" {
			if !strings.HasSuffix(cells[1], " n "+trials) || cells[6] != blocks {
				t.Errorf("got %q, want the median of %s trials and the effect of %s blocks", cells, trials, blocks)
			}
			return
		}
	}
	t.Error("the arm has no row")
}
