package studies_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tarehq/tare/lab/published"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/studies"
)

var update = flag.Bool("update", false, "rewrite study.schema.json")

func all(t *testing.T) []*study.Study {
	t.Helper()
	s, err := studies.All()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNamed(t *testing.T) {
	for _, s := range all(t) {
		got, err := studies.Named(s.Name)
		if err != nil || got.Name != s.Name {
			t.Errorf("Named(%q): got %v, %v", s.Name, got, err)
		}
	}
	_, err := studies.Named("nestng")
	if err == nil || !strings.Contains(err.Error(), "did you mean nesting?") {
		t.Errorf("Named(nestng): got %v, want a hint at nesting", err)
	}
}

// Every built-in study says what it asks, why, and has a quick form that a
// person waits for.
func TestEveryStudyIsWhole(t *testing.T) {
	for _, s := range all(t) {
		if s.Title == "" || s.Question == "" || s.Notes == "" || s.Threshold == 0 || s.File != "" {
			t.Errorf("%s: want a title, a question, notes, a threshold and no file", s.Name)
		}
		q, longest := s.QuickForm(), 150*time.Second
		if d := study.Estimate(q, s.Quick.Blocks, 250*time.Millisecond); d == 0 || d > longest {
			t.Errorf("%s: the quick form takes %s, want some time and at most %s", s.Name, d, longest)
		}
		for _, w := range s.Workloads {
			for i, g := range w.Targets {
				v := g.Verify
				if g.Header["Accept-Encoding"] != "" && v.Status != 0 && len(v.Header) > 0 {
					continue // each encoder has bytes of its own: the arms compare what they decode
				}
				if v.Status == 0 || len(v.Header) == 0 && v.Status == 200 || v.Length == nil && v.SHA256 == "" && v.Contains == "" && v.Status == 200 {
					t.Errorf("%s: workload %s, target %d: want status, a header and the body verified", s.Name, w.Name, i)
				}
			}
		}
	}
}

// Every arm's program, and every server's, is in the repository, unless it is a
// module's at a version or one that must be installed.
func TestArmsExist(t *testing.T) {
	for _, s := range all(t) {
		arms := s.Arms
		for _, w := range s.Workloads {
			if w.Server != nil {
				arms = append(arms, *w.Server)
			}
		}
		for _, a := range arms {
			if strings.Contains(a.Go, "@") || len(a.Needs) > 0 && a.Command != nil {
				continue
			}
			name, _, _ := strings.Cut(a.Rival, "@")
			dir := filepath.Join("..", "arms", "rivals", name)
			if a.Go != "" {
				dir = filepath.Join("..", a.Go)
			}
			if sources, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(sources) == 0 {
				t.Errorf("%s, arm %s: no Go program in %s", s.Name, a.Name, dir)
			}
		}
	}
}

func TestClaims(t *testing.T) {
	claims, err := studies.Claims()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(claims), 72; got != want {
		t.Errorf("got %d claims, want %d", got, want)
	}
	byID := map[string]published.Claim{}
	for _, c := range claims {
		byID[c.ID] = c
	}
	tested := map[string]string{}
	names := map[string]bool{}
	for _, s := range all(t) {
		names[s.Name] = true
		for _, c := range s.Claims {
			tested[c.ID] = s.Name
			if byID[c.ID].Study != s.Name {
				t.Errorf("%s tests %s, which claims.yaml gives to %q", s.Name, c.ID, byID[c.ID].Study)
			}
			for _, k := range c.Checks {
				for _, figure := range []*float64{k.PublishedArm, k.PublishedAgainst} {
					if figure != nil && !states(byID[c.ID], *figure) {
						t.Errorf("%s, %s, %q: %g is not among the published figures", s.Name, c.ID, k.Says, *figure)
					}
				}
			}
		}
	}
	for _, c := range claims {
		if names[c.Study] && tested[c.ID] == "" {
			t.Errorf("%s belongs to %s, which has no check of it", c.ID, c.Study)
		}
	}
}

// A run may stop at its first look, so that many blocks bound the intervals of all checks that
// decide a claim together.
func TestFirstLookBounds(t *testing.T) {
	for _, whole := range all(t) {
		for form, s := range map[string]*study.Study{"": whole, ", quick form": whole.QuickForm()} {
			looks, err := stats.LooksAt(s.Looks)
			if err != nil {
				t.Errorf("%s%s: %v", s.Name, form, err)
				continue
			}
			for _, c := range s.Claims {
				share := looks[0].Alpha / float64(len(c.Headline()))
				if least := stats.BlocksForFamily(1, share); least > looks[0].Blocks && slices.ContainsFunc(c.Headline(), byBlocks) {
					t.Errorf("%s%s: %s needs %d blocks to bound its intervals, and the first look is after %d", s.Name, form, c.ID, least, looks[0].Blocks)
				}
			}
		}
	}
}

// byBlocks says whether the blocks' values judge a check, not what arms or profiles say.
func byBlocks(k study.Check) bool {
	m, _ := study.MetricNamed(k.Metric)
	return k.Kind != study.Fact && !m.Attributed
}

// A check of errors can come out both ways: a trial with as many as contradict it
// counts, and is not left out as one that went wrong.
func TestErrorsCount(t *testing.T) {
	const otherwise = 0.001 // may fail in a trial that counts, where a workload says nothing
	for _, s := range all(t) {
		for _, c := range s.Claims {
			for _, k := range c.Checks {
				i := slices.IndexFunc(s.Workloads, func(w study.Workload) bool { return w.Name == k.Workload })
				if k.Metric != "errors" || i < 0 {
					continue
				}
				bound := otherwise
				for _, figure := range []*float64{k.Bound, k.PublishedArm, k.PublishedAgainst} {
					if figure != nil {
						bound = max(bound, *figure)
					}
				}
				if most := s.Workloads[i].FailuresOr(); most <= bound {
					t.Errorf("%s, %s, %q: no trial of workload %s counts with more than %g failed, so %g is never exceeded", s.Name, c.ID, k.Says, k.Workload, most, bound)
				}
			}
		}
	}
}

// What was published as delays and throughputs is not decided by CPU.
func TestDecidedByWhatWasPublished(t *testing.T) {
	claims, err := studies.Claims()
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string][]string{} // by claim, their names
	for _, c := range claims {
		for _, row := range c.Values {
			figures[c.ID] = slices.AppendSeq(figures[c.ID], maps.Keys(row))
		}
	}
	has := func(id string, fits func(string) bool) bool { return slices.ContainsFunc(figures[id], fits) }
	for _, s := range all(t) {
		for _, c := range s.Claims {
			delays := has(c.ID, func(name string) bool { return name == "rps" || strings.HasPrefix(name, "mean_") })
			for _, k := range c.Headline() {
				if delays && strings.HasPrefix(k.Metric, "cpu_") && !has(c.ID, func(name string) bool { return strings.HasPrefix(name, "cpu_") }) {
					t.Errorf("%s, %s, %q: %s decides, and the published figures are %v", s.Name, c.ID, k.Says, k.Metric, figures[c.ID])
				}
			}
		}
	}
}

// measured analyses eight blocks of a study in which each arm shows just these
// figures under one workload; the twin shows those of the control.
func measured(t *testing.T, name, workload string, figures map[string]map[string]float64) map[string]verdict.Claim {
	t.Helper()
	s, err := studies.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return judged(t, s, workload, figures)
}

// judged is the same of a study in whichever form.
func judged(t *testing.T, s *study.Study, workload string, figures map[string]map[string]float64) map[string]verdict.Claim {
	t.Helper()
	r := &record.Run{Manifest: record.Manifest{Study: *s, Outcome: "cap"}}
	r.Manifest.Study.Twin = false // published figures have no noise floor
	add := func(block int, arm string, twin bool) {
		r.Trials = append(r.Trials, record.Trial{
			Seq: len(r.Trials), Block: block, Arm: arm, Twin: twin, Workload: workload, Requests: 20_000, Steady: true, Metrics: figures[arm],
		})
	}
	for block := range s.LooksUpTo(0)[0] {
		for arm := range figures {
			add(block, arm, false)
		}
		if figures[s.Control] != nil {
			add(block, s.Control, true)
		}
	}
	a, err := verdict.Analyse(r)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]verdict.Claim{}
	for _, c := range a.Claims {
		claims[c.ID] = c
	}
	return claims
}

// What a closed loop leaves out while a server stalls lowers its rate, and response
// times at other rates are not compared: the claim must be judged all the same.
func TestStallIsJudged(t *testing.T) {
	const ms = 1e6
	for _, tc := range []struct {
		name string
		p99  float64 // that closed loops report
		want verdict.Word
	}{
		{"left out", 1.8 * ms, verdict.Confirmed},
		{"told", 908 * ms, verdict.Contradicted},
	} {
		c := measured(t, "tools", "stall-1k", map[string]map[string]float64{
			"tare":   {"throughput": 999, "response_p99": 908 * ms},
			"fortio": {"throughput": 996, "response_p99": tc.p99},
			"hey":    {"throughput": 902, "response_p99": tc.p99},
		})["P5.tools"]
		if hey := c.Checks[1]; c.Verdict != tc.want || hey.Check.Arm != "hey" || hey.Holds.Verdict != tc.want {
			t.Errorf("%s: got %q (%s), hey %q (%s); want %q of both", tc.name, c.Verdict, c.Sentence, hey.Holds.Verdict, hey.Holds.Reason, tc.want)
		}
	}
}

// A run that shows what was published does not contradict it, though what is measured
// holds more than what was published: the answer, the other nodes, what else is held.
func TestPublishedParts(t *testing.T) {
	const answer = 400 // ns
	chain := func(node float64) map[string]float64 { return map[string]float64{"loop_time": answer + 16*node} }
	stacks := func(one float64) map[string]float64 {
		return map[string]float64{"stack_live": 250 * (one + 8) * (1 << 10)}
	}
	match := func(ns float64) map[string]float64 { return map[string]float64{"loop_time": answer + ns} }
	heap := func(each float64) map[string]float64 { return map[string]float64{"heap_live": 10_000 * (12e3 + each)} }
	for _, tc := range []struct {
		study, workload, claim string
		check                  int
		want                   verdict.Word // on the direction
		figures                map[string]map[string]float64
	}{
		{"locality", "few", "P1.locality", 0, verdict.Confirmed, map[string]map[string]float64{"in-order": chain(8.3), "shuffled": chain(14.9)}},
		{"depth", "held", "P1.depth", 2, verdict.Confirmed, map[string]map[string]float64{"depth-5": stacks(4.1), "depth-50": stacks(38.9)}},
		{"routekinds", "hit", "P4.kinds", 0, verdict.Confirmed, map[string]map[string]float64{"chi-static": match(80), "chi-parameter": match(250)}},
		{"routekinds", "hit", "P4.kinds", 1, verdict.Confirmed, map[string]map[string]float64{"chi-parameter": match(250), "chi-regexp": match(600)}},
		{"context", "half", "P2.ctxmemory", 0, verdict.Confirmed, map[string]map[string]float64{"argument": {"loop_bytes": 290}, "values": {"loop_bytes": 320}}},
		{"context", "held-10k", "P2.ctxmemory", 1, verdict.Inconclusive, map[string]map[string]float64{"argument": heap(290), "values": heap(320)}},
	} {
		r := measured(t, tc.study, tc.workload, tc.figures)[tc.claim].Checks[tc.check]
		if r.Direction.Verdict != tc.want || r.Ratio.Verdict == verdict.Contradicted || r.Difference.Verdict == verdict.Contradicted {
			t.Errorf("%s, %q: as published, got direction %+v, ratio %+v, difference %+v", tc.claim, r.Check.Says, r.Direction, r.Ratio, r.Difference)
		}
	}
}

// What a claim says decides on it, by what a run can tell: none hangs on a mean that lag voids,
// on an operation of our own making, or on one of two parts.
func TestWhatDecides(t *testing.T) {
	const µs, ms = 1e3, 1e6
	for _, tc := range []struct {
		study, workload, claim string
		want                   verdict.Word
		figures                map[string]map[string]float64
	}{
		{"guards", "capacity", "P2.guards", verdict.Contradicted, map[string]map[string]float64{ // the limit is the dearest
			"none": {"throughput": 2400}, "jwt": {"throughput": 1800}, "limit": {"throughput": 1580}, "log": {"throughput": 2280}, "jwt+limit+log": {"throughput": 860}}},
		{"guards", "capacity", "P2.guards", verdict.Confirmed, map[string]map[string]float64{
			"none": {"throughput": 2400}, "jwt": {"throughput": 1800}, "limit": {"throughput": 1580}, "log": {"throughput": 1200}, "jwt+limit+log": {"throughput": 860}}},
		{"combos", "half", "P2.combos", verdict.DirectionOnly, map[string]map[string]float64{
			"none": {"response_mean": 80 * µs}, "logger": {"response_mean": 160 * µs}, "recovery": {"response_mean": 82 * µs}, "logger+recovery": {"response_mean": 170 * µs}}},
		{"nesting", "half", "P2.trim", verdict.Contradicted, map[string]map[string]float64{
			"two": {"response_mean": 12.3 * ms, "rss_peak": 124e6}, "five": {"response_mean": 18.7 * ms, "rss_peak": 124e6}}},
		{"scenario", "journey", "P4.business", verdict.Confirmed, map[string]map[string]float64{
			"gateway": {"order/relative_mean": 1.04, "recommend/relative_mean": 1.01}}},
	} {
		if c := measured(t, tc.study, tc.workload, tc.figures)[tc.claim]; c.Verdict != tc.want {
			t.Errorf("%s with %v: got %s: %s; want %s", tc.claim, tc.figures, c.Verdict, c.Sentence, tc.want)
		}
	}
}

// A trial counts though more requests than on average meet the upstream that fails: one of
// three does for a twentieth of the time.
func TestChanceFailuresDoNotVoid(t *testing.T) {
	s, err := studies.Named("proxies")
	if err != nil {
		t.Fatal(err)
	}
	q := s.QuickForm()
	i := slices.IndexFunc(q.Workloads, func(w study.Workload) bool { return w.Name == "one-fails" })
	w := q.Workloads[i]
	n := w.Rate.PerSecond * q.Measured(w).Seconds()
	failing := n / 3 / 20
	if most := n * w.Failures; most < failing+4*math.Sqrt(failing) {
		t.Errorf("of %.0f requests %.1f fail on average, and %.1f may: chance voids trials", n, failing, most)
	}
}

// A match that grows as the published table does confirms it, all parts. One that does not
// grow, or grows in proportion, does not, whatever answering takes.
func TestScalingIsTested(t *testing.T) {
	s, err := studies.Named("routescaling")
	if err != nil {
		t.Fatal(err)
	}
	table := func(of func(routes float64) float64) map[string]map[string]float64 {
		figures := map[string]map[string]float64{"servemux": {"loop_time": 900}}
		for _, n := range []float64{100, 1000, 4100, 5000} {
			figures[fmt.Sprintf("match-%g", n)] = map[string]float64{"loop_time": of(n)}
		}
		return figures
	}
	for _, tc := range []struct {
		name string
		of   func(routes float64) float64
		want [3]verdict.Word
		all  verdict.Word
	}{
		{"as published", func(n float64) float64 {
			if n <= 1000 {
				return 2.1e6 + 6.6e6*(n-100)/900
			}
			return 8.7e6 + 14.7e6*(n-1000)/4000
		}, [3]verdict.Word{verdict.Confirmed, verdict.Confirmed, verdict.Confirmed}, verdict.Confirmed},
		{"not at all", func(float64) float64 { return 300 },
			[3]verdict.Word{verdict.Contradicted, verdict.Contradicted, verdict.Contradicted}, verdict.Contradicted},
		{"in proportion", func(n float64) float64 { return 200 + 21*n },
			[3]verdict.Word{verdict.Confirmed, verdict.Confirmed, verdict.Contradicted}, verdict.Contradicted},
		{"more than in proportion", func(n float64) float64 { return n * n },
			[3]verdict.Word{verdict.Confirmed, verdict.Confirmed, verdict.Contradicted}, verdict.Contradicted},
	} {
		c := judged(t, s.QuickForm(), "servemux-match", table(tc.of))["P4.scaling"]
		for i, want := range tc.want {
			if got := c.Checks[i].Direction; got.Verdict != want {
				t.Errorf("%s, %q: got %+v, want %s", tc.name, c.Checks[i].Check.Says, got, want)
			}
		}
		if c.Verdict != tc.all || c.Deciding != len(tc.want) {
			t.Errorf("%s: got %s (%s) by %d checks, want %s by %d", tc.name, c.Verdict, c.Sentence, c.Deciding, tc.all, len(tc.want))
		}
	}
}

// What the arms of this repository are to reach stands in their studies as
// goals, each on the side that its metric is better on. A quick form keeps some
// of them.
func TestGoals(t *testing.T) {
	var with []string
	for _, s := range all(t) {
		if len(s.Goals) == 0 {
			continue
		}
		with = append(with, s.Name)
		for _, g := range s.Goals {
			for _, k := range g.Checks() {
				m, ok := study.MetricNamed(k.Metric)
				if !ok || (k.Op == ">=") != m.Higher {
					t.Errorf("%s, %q: %s %s is no goal, since higher is better is %t", s.Name, g.Says, k.Metric, k.Op, m.Higher)
				}
			}
		}
		if q := s.QuickForm(); len(q.Goals) == 0 {
			t.Errorf("%s: the quick form keeps none of %d goals", s.Name, len(s.Goals))
		}
	}
	if want := []string{"chain", "engine", "github", "guards", "proxies-latency", "proxies-tls", "proxies", "routekinds", "routers", "routescaling", "static", "tools-h2", "tools-tls", "tools", "weights"}; !slices.Equal(with, want) {
		t.Errorf("got goals in %v, want them in %v", with, want)
	}
}

// A verdict that no study gives comes from a test that there is.
func TestVerdictsComeFromTests(t *testing.T) {
	claims, err := studies.Claims()
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for _, c := range claims {
		if c.By == "" {
			continue
		}
		given++
		words, dir := strings.Fields(c.By), ".." // go test ./package -run Name
		if words[1] == "-C" {
			dir, words = filepath.Join(dir, words[2]), words[2:]
		}
		found := false
		for _, file := range glob(t, filepath.Join(dir, words[2], "*_test.go")) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(source), "\nfunc "+words[4]+"(t *testing.T)")
		}
		if !found {
			t.Errorf("%s: no test answers %q", c.ID, c.By)
		}
	}
	if given == 0 {
		t.Error("no claim has a verdict from a test")
	}
}

// states reports whether a claim publishes a figure, given in its base unit.
func states(c published.Claim, want float64) bool {
	units := []struct {
		suffix string
		base   float64
	}{
		{"_us", 1e3}, {"us", 1e3}, {"ns", 1}, {"_ms", 1e6}, {"_per_req", 1}, {"_mb", 1e6}, {"_kib", 1 << 10}, {"_pct", 0.01}, {"_10k", 1}, {"rps", 1}, {"allocs", 1},
	}
	for _, row := range c.Values {
		for name, v := range row {
			figure, ok := v.(float64)
			for _, u := range units {
				if ok && strings.HasSuffix(name, u.suffix) && math.Abs(figure*u.base-want) <= 1e-9*math.Abs(want) {
					return true
				}
			}
		}
	}
	return false
}

// study.schema.json is what the parser's table makes, and says the same as the
// parser of every file but for what refers from one part to another.
func TestSchema(t *testing.T) {
	const file = "study.schema.json"
	want, err := study.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what the parser's table makes; run go test ./studies -update", file)
	}
	var s jsonschema.Schema
	if err := s.UnmarshalJSON(got); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	accept := func(file string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("not YAML: %w", err)
		}
		return resolved.Validate(v)
	}
	for _, file := range glob(t, "*.yaml", "../lab/study/testdata/*.yaml") {
		if err := accept(file); (err == nil) == (file == "claims.yaml") {
			t.Errorf("%s: the schema says %v", file, err)
		}
	}
	for _, file := range glob(t, "../lab/study/testdata/invalid/*.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		refers := strings.HasPrefix(string(data), "# schema: accepts\n")
		if err := accept(file); (err == nil) != refers {
			t.Errorf("%s: the schema says %v, want acceptance %t", file, err, refers)
		}
	}
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil || len(files) == 0 {
			t.Fatalf("looking for %s: %d found, %v", p, len(files), err)
		}
		all = append(all, files...)
	}
	return all
}
