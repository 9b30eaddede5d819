package claims

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/published"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/studies"
)

func TestClaimFigures(t *testing.T) {
	p95, _ := study.MetricNamed("response_p95")
	compared := &verdict.Comparison{Metric: p95, Scale: verdict.Ratio, N: 8, Alpha: 0.01}
	compared.Effect.Effect, compared.Effect.Interval = 0, stats.Interval{}
	compared.Difference = verdict.Estimate{Value: 3100, Interval: stats.Interval{Lo: -1000, Hi: 8000}, Level: 0.99}
	level := &verdict.Estimate{Value: 1200, Interval: stats.Interval{Lo: 1000, Hi: 1400}, Level: 0.9833}
	none, some := verdict.Finding{Verdict: verdict.Contradicted}, verdict.Finding{Verdict: verdict.Confirmed}
	skewed := new(*compared)
	skewed.Effect.Effect, skewed.Effect.Interval, skewed.Effect.Equivalence = 0.1, stats.Interval{Lo: 0.05, Hi: 0.2}, stats.Interval{Lo: 0.06, Hi: 0.18}
	withheld := &verdict.Comparison{Metric: p95, Withheld: "other rates"}
	f := func(v float64) *float64 { return &v }
	on := func(k study.Check) study.Check { k.Metric = p95.Name; return k }
	tests := []struct {
		name                          string
		r                             verdict.CheckResult
		published, measured, interval string
	}{
		{"levels", verdict.CheckResult{Check: on(study.Check{PublishedArm: f(159e3), PublishedAgainst: f(121.8e3)}), Comparison: compared}, "+37.2 µs", "+3.10 µs", "99 % interval -1.00 µs to +8.00 µs"},
		{"difference", verdict.CheckResult{Check: on(study.Check{PublishedDifference: f(6600)}), Comparison: compared}, "+6.60 µs", "+3.10 µs", "99 % interval -1.00 µs to +8.00 µs"},
		{"ratio", verdict.CheckResult{Check: on(study.Check{PublishedRatio: f(.69)}), Comparison: compared}, "-31.0 %", "0.0 %", "99 % interval 0.0 to 0.0 %"},
		{"direction", verdict.CheckResult{Check: on(study.Check{Direction: "less"}), Comparison: compared}, "less", "+3.10 µs", "99 % interval -1.00 µs to +8.00 µs"},
		{"no effect", verdict.CheckResult{Check: on(study.Check{Direction: "less"}), Comparison: compared, Direction: none}, "less", "+3.10 µs", "0.0 %, 98 % interval 0.0 to 0.0 %"},
		{"decided as a share alone", verdict.CheckResult{Check: on(study.Check{Direction: "more"}), Comparison: skewed, Direction: some}, "more", "+3.10 µs", "+10.5 %, 99 % interval +5.1 to +22.1 %"},
		{"bound", verdict.CheckResult{Check: on(study.Check{Kind: study.Bound, Op: ">=", Bound: f(18700)}), Measured: level}, ">= 18.7 µs", "1.20 µs", "98.33 % interval 1.00 µs to 1.40 µs"},
		{"bound of a ratio", verdict.CheckResult{Check: on(study.Check{Kind: study.Bound, Op: "<=", BoundRatio: f(.6)}), Measured: &verdict.Estimate{Value: .55, Interval: stats.Interval{Lo: .5, Hi: .58}, Level: .95, Anytime: true}}, "<= 0.600 ×", "0.550 ×", "95 % anytime interval 0.500 to 0.580"},
		{"interaction", verdict.CheckResult{Check: on(study.Check{Kind: study.Interaction, Direction: "more"}), Measured: level}, "more", "+1.20 µs", "98.33 % interval +1.00 µs to +1.40 µs"},
		{"fact", verdict.CheckResult{Check: study.Check{Kind: study.Fact, Value: "30s"}, Reported: "0s\x1b[2J"}, "30s", "0s", ""},
		{"withheld", verdict.CheckResult{Check: on(study.Check{Direction: "less"}), Comparison: withheld}, "less", "", ""},
		{"not there", verdict.CheckResult{Check: on(study.Check{Direction: "less"})}, "less", "", ""},
	}
	for _, tt := range tests {
		tt.r.Metric = p95
		value, interval := measuredFigure(&tt.r)
		if got := publishedFigure(tt.r.Check); got != tt.published {
			t.Errorf("%s: published %q, want %q", tt.name, got, tt.published)
		}
		if !strings.HasPrefix(value, tt.measured) || strings.Contains(value, "\x1b") || interval != tt.interval || (tt.measured == "") != (value == "") {
			t.Errorf("%s: measured %q (%q), want %q (%q)", tt.name, value, interval, tt.measured, tt.interval)
		}
	}
}

// What a run measured of a claim stands in the table beside what was published.
func TestClaimsTable(t *testing.T) {
	dir := t.TempDir()
	keepTuning(t, dir, "kept", time.Now().Add(-time.Hour), nil)
	keepTuning(t, dir, "newer", time.Now(), func(s *study.Study) { // cannot judge the headline
		s.Workloads = slices.DeleteFunc(s.Workloads, func(w study.Workload) bool { return w.Name == s.Claims[0].Checks[0].Workload })
	})
	var out strings.Builder
	c := &Cmd{HomeFlag: runs.HomeFlag{Dir: dir}}
	if err := c.Run(&cli.Terminal{Out: &out, Err: io.Discard, Width: 140}); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(line, " ")
		rows[name] = strings.Join(strings.Fields(rest), " ")
	}
	for name, want := range map[string]string{
		"CLAIM":      "STATE PUBLISHED MEASURED STATEMENT",
		"P5.tuning":  "+11,355/s +100/s Setting",
		"P1.nesting": "+37.2 µs",
	} {
		if !strings.Contains(rows[name], want) {
			t.Errorf("row %s is %q, want %q in it", name, rows[name], want)
		}
	}
	out.Reset()
	c = &Cmd{HomeFlag: runs.HomeFlag{Dir: dir}, IDs: []string{"P5.tuning"}, JSON: true}
	if err := c.Run(&cli.Terminal{Out: &out, Err: io.Discard, Width: 120}); err != nil {
		t.Fatal(err)
	}
	var got []entry
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got) != 1 {
		t.Fatalf("%d rows, %v, want one of %s", len(got), err, out.String())
	}
	if r := got[0]; len(r.Runs) == 0 || r.Runs[0] != "kept" || slices.Contains(r.Runs, "newer") {
		t.Errorf("got the runs %q, want that which measured what decides before any that came with tare", r.Runs)
	}
	if r := got[0]; r.Run != "kept" {
		t.Errorf("got the verdict %q of run %s, want that of the older run, which judged the headline", r.State, r.Run)
	}
	if r := got[0]; r.Metric != "throughput" || r.Figure != "+11,355/s" || r.Measured != "+100/s" || r.Interval == "" {
		t.Errorf("got %+v, want the figures of its first check", r)
	}
}

// A run that settles a claim replaces what an older one settled, and one that cannot
// tell does not.
func TestNewestThatSettlesCounts(t *testing.T) {
	dir := t.TempDir()
	keepTuning(t, dir, "first", time.Now().Add(-2*time.Hour), nil)
	keepTuning(t, dir, "second", time.Now().Add(-time.Hour), nil)
	keepTuning(t, dir, "third", time.Now(), func(s *study.Study) { // cannot tell: looks share the error rate out until none is left
		s.Looks = nil
		for n := 8; n <= 60; n++ {
			s.Looks = append(s.Looks, n)
		}
	})
	shipped, err := studies.Results()
	if err != nil {
		t.Fatal(err)
	}
	all := 3 + len(shipped["P5.tuning"].Runs)
	file := filepath.Join(t.TempDir(), "results.json")
	var out strings.Builder
	c := &Cmd{HomeFlag: runs.HomeFlag{Dir: dir}, IDs: []string{"P5.tuning"}, Results: file}
	if err := c.Run(&cli.Terminal{Out: &out, Err: io.Discard, Width: 400}); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("run: second, %s, one of %d runs; the newer one did not decide\n", time.Now().Add(-time.Hour).UTC().Format(time.DateOnly), all); !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwant %q in it", out.String(), want)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string]studies.Result
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}
	if got := kept["P5.tuning"]; got.Run != "second" || got.Measured != "+100/s" || len(got.Checks) == 0 || len(got.Runs) != all {
		t.Errorf("kept is %+v, want what the second run found", got)
	}
}

// How many runs there are, and what became of the newer ones, is said of each claim.
func TestRunsAreCounted(t *testing.T) {
	all := []string{"20261103-c", "20261102-b", "20261101-a"}
	for _, tc := range []struct {
		state, run string
		runs       []string
		want       string
	}{
		{"confirmed", all[2], all[2:], ""},
		{"confirmed", all[0], all, "the newest of 3 runs"},
		{"contradicted", all[1], all, "one of 3 runs; the newer one did not decide"},
		{"confirmed", all[2], all, "one of 3 runs; the 2 newer ones did not decide"},
		{"inconclusive", all[0], all, "none of 3 runs decided"},
	} {
		notes := runNotes(&studies.Result{State: tc.state, Run: tc.run, Runs: tc.runs})
		if got := strings.Join(notes[1:], ", "); got != tc.want {
			t.Errorf("%s by %s of %v: got %q, want %q", tc.state, tc.run, tc.runs, got, tc.want)
		}
	}
}

// A run that came with tare is not counted as a newer one of one's own that did not decide.
func TestNewerRunsOfOthersAreNotCounted(t *testing.T) {
	shipped, err := studies.Results()
	if err != nil {
		t.Fatal(err)
	}
	r := shipped["P5.tuning"]
	if r.Run == "" || !settled(r.State) {
		t.Skip("SKIPPED: no run that came with tare decides P5.tuning")
	}
	dir, mine := t.TempDir(), "20200101-000000-tuning"
	keepTuning(t, dir, mine, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), nil)
	judged, err := (&Cmd{HomeFlag: runs.HomeFlag{Dir: dir}}).judged(&cli.Terminal{Err: io.Discard})
	if got := judged["P5.tuning"]; err != nil || got.Run != mine || !slices.Equal(got.Runs, []string{mine}) {
		t.Errorf("got run %s of %v, %v, want %s alone", got.Run, got.Runs, err, mine)
	}
}

// What would decide is a number of blocks only where one is worth running.
func TestWhatWouldDecide(t *testing.T) {
	tested := published.Claim{Kind: published.Tested, Study: "tuning"}
	for _, tc := range []struct {
		r    studies.Result
		want string
	}{
		{studies.Result{State: "inconclusive", Interval: "-1 to +1 µs", Needs: 40}, "tare run --blocks 40 tuning"},
		{studies.Result{State: "inconclusive", Interval: "-1 to +1 µs", Needs: 40, Quick: true}, "tare run --quick --blocks 40 tuning"},
		{studies.Result{State: "inconclusive", Interval: "-1 to +1 µs"}, "no number of blocks that is worth running"},
		{studies.Result{State: "inconclusive"}, "tare run tuning"}, // nothing was measured
		{studies.Result{State: "inconclusive", Interval: "unbounded", Rounds: 6}, "6 more rounds of captures that count (repeat under attribute)"},
		{studies.Result{State: "confirmed", Interval: "+1 to +2 µs"}, "tare run tuning"},
	} {
		if got := (&entry{tested, tc.r}).decides().Text; got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.r, got, tc.want)
		}
	}
}

// What a run found by another rule than the study has now decides nothing, and is named.
func TestOtherRulesDecideNothing(t *testing.T) {
	tested, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	today := studies.Rules(tested)
	s, err := studies.Named("tuning")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*study.Claim)
		counts bool
	}{
		"as it is":         {func(*study.Claim) {}, true},
		"other words":      {func(c *study.Claim) { c.Checks[0].Says, c.Checks[0].Absolute = "faster", "" }, true},
		"another part":     {func(c *study.Claim) { c.Checks[1].Workload = "capacity" }, true},
		"another workload": {func(c *study.Claim) { c.Checks[0].Workload = "half" }, false},
		"another figure":   {func(c *study.Claim) { more := *c.Checks[0].PublishedArm + 1; c.Checks[0].PublishedArm = &more }, false},
		"two decide":       {func(c *study.Claim) { c.Deciding = 2 }, false},
	} {
		run := &record.Run{Manifest: record.Manifest{Study: *s, Outcome: "cap"}}
		claim := s.Claims[0]
		claim.Checks = slices.Clone(claim.Checks)
		tc.change(&claim)
		run.Manifest.Study.Claims = []study.Claim{claim}
		a, err := verdict.Analyse(run)
		if err != nil {
			t.Fatal(err)
		}
		if r := newResult(a, &a.Claims[0]); r.RuledBy(today["P5.tuning"]) != tc.counts {
			t.Errorf("%s: want that it counts: %t", name, tc.counts)
		}
	}
	dir := t.TempDir()
	keepTuning(t, dir, "kept", time.Now(), func(s *study.Study) { s.Claims[0].Deciding = 2 })
	var said strings.Builder
	judged, err := (&Cmd{HomeFlag: runs.HomeFlag{Dir: dir}}).judged(&cli.Terminal{Err: &said})
	if err != nil || slices.Contains(judged["P5.tuning"].Runs, "kept") || !strings.Contains(said.String(), "what run kept found of P5.tuning") {
		t.Errorf("got the runs %q, said %q, %v; want the run excluded by name", judged["P5.tuning"].Runs, said.String(), err)
	}
}

// No result is kept that another rule decided than the study has now.
func TestKeptResultsAreOfTodaysRules(t *testing.T) {
	tested, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	today := studies.Rules(tested)
	kept, err := studies.Results()
	if err != nil {
		t.Fatal(err)
	}
	for id, r := range kept {
		if !r.RuledBy(today[id]) {
			t.Errorf("%s: the result of run %s was decided by another rule: `go run ./cmd/tare claims --results studies/results.json --markdown docs/claims.md` leaves it out", id, r.Run)
		}
	}
}

// A claim is shown with its source, what was published, the audit and all its
// checks, and one that no study tests says so.
func TestClaimsInFull(t *testing.T) {
	show := func(id string) string {
		var out strings.Builder
		c := &Cmd{HomeFlag: runs.HomeFlag{Dir: t.TempDir()}, IDs: []string{id}}
		if err := c.Run(&cli.Terminal{Out: &out, Err: io.Discard, Width: 400}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for id, want := range map[string][]string{
		"P4.scaling": {
			"P4.scaling: Matching time grows", "source: Gin路由性能对比测试 (Gin routing against net/http)", "published: mean_ms 8.7, routes 1000, rps 3200",
			"audit: It nowhere says more than linearly.", "check: ten times the routes take ServeMux 4.1 times as long to match (8.7 and 2.1 ms): ", "published +314.3 %", "handler in process published less",
		},
		"P1.nesting":     {"(the filter report), chapter 1", "published under: wrk, 16 threads"},
		"P1.echo":        {"state: contradicted", "shown by: go test ./studies -run TestEchoStandsOnNetHTTP"},
		"P3.clusters":    {"state: confirmed", "shown by: go -C kube test ./operator -run TestServiceOverClusters"},
		"P3.frameworks":  {"rps 1218430"},
		"P3.gin-third":   {"published <= 0.34"},
		"P1.metrics-api": {"which is: Judged is the toolchain"},
	} {
		got := show(id)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: got\n%s\nwant %q in it", id, got, text)
			}
		}
	}
}

// Claims that a run decided are counted apart from the others, and README states both numbers.
func TestClaimsCountsDecided(t *testing.T) {
	rows := []entry{}
	for _, state := range []string{"run nesting", "contradicted", noStudy, "confirmed", "run tuning", "inconclusive", "contradicted"} {
		rows = append(rows, entry{Result: studies.Result{State: state}})
	}
	want := "7 claims, 3 decided (2 contradicted, 1 confirmed); 2 not run yet, 1 no study yet, 1 inconclusive"
	if got := countStates(rows); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c := &Cmd{HomeFlag: runs.HomeFlag{Dir: t.TempDir()}}
	judged, err := c.judged(&cli.Terminal{Err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = c.rows(judged); err != nil {
		t.Fatal(err)
	}
	decided := 0
	for _, r := range rows {
		if settled(r.State) {
			decided++
		}
	}
	readme, err := os.ReadFile("../../../../README.md")
	if want := fmt.Sprintf("%d [published claims](docs/claims.md), %d of them decided", len(rows), decided); err != nil || !strings.Contains(string(readme), want) {
		t.Errorf("README.md: want %q in it (%v)", want, err)
	}
}

// docs/claims.md is what `tare claims --markdown` writes of the results kept in studies.
func TestClaimsDocsPage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "claims.md")
	c := &Cmd{HomeFlag: runs.HomeFlag{Dir: dir}, Markdown: file}
	if err := c.Run(&cli.Terminal{Out: io.Discard, Err: io.Discard, Width: 80}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("docs/claims.md is stale: write it by `go run ./cmd/tare claims --results studies/results.json --markdown docs/claims.md`")
	}
}

// keepTuning keeps in dir a run of study tuning, changed so, in which tuned
// answers a hundred requests a second more.
func keepTuning(t *testing.T, dir, id string, at time.Time, change func(*study.Study)) {
	t.Helper()
	s, err := studies.Named("tuning")
	if err != nil {
		t.Fatal(err)
	}
	first := s.Claims[0].Checks[0]
	if change != nil {
		change(s)
	}
	w, err := record.Create(filepath.Join(dir, id), record.Manifest{ID: id, Study: *s, Seed: 1, Started: at})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for seq := range 24 { // control, arm and twin in turn
		tr := record.Trial{Seq: seq, Block: seq / 3, Workload: first.Workload, Arm: s.Control, Twin: seq%3 == 2, Steady: true, Metrics: map[string]float64{first.Metric: 10000}}
		if seq%3 == 1 {
			tr.Arm, tr.Metrics = first.Arm, map[string]float64{first.Metric: 10100}
		}
		if err := w.Append(tr, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish("cap"); err != nil {
		t.Fatal(err)
	}
}

func TestTableWidths(t *testing.T) {
	r := entry{Result: studies.Result{State: "run nesting", Figure: "+37.2 µs"}}
	r.ID, r.Statement = "P1.nesting", "Three nested middlewares raise P95 by 37.2 µs over none at about 98,400 req/s"
	clitest.CheckWidths(t, func(w io.Writer, width int) {
		(&Cmd{}).table(&cli.Terminal{Out: w, Width: width}, []entry{r})
	}, "P1.nesting", "+37.2 µs", "Three nested mi", "1 claim, 0 decided; 1 not run yet")
}

// No statement is cut: on a terminal it is broken, in a pipe it is on its row.
func TestStatementsAreWhole(t *testing.T) {
	r := entry{Result: studies.Result{State: "run nesting", Figure: "+37.2 µs of each request's time"}}
	r.ID, r.Statement = "P1.nesting", "Three nested middlewares raise P95 by 37.2 µs over none at about 98,400 req/s"
	for _, piped := range []bool{false, true} {
		var out strings.Builder
		(&Cmd{}).table(&cli.Terminal{Out: &out, Width: 60, Piped: piped}, []entry{r})
		got := out.String()
		if !piped {
			got = strings.Join(strings.Fields(got), " ")
		}
		if !strings.Contains(got, r.Statement) {
			t.Errorf("in a pipe %t: no %q in\n%s", piped, r.Statement, &out)
		}
		if piped && !strings.Contains(out.String(), r.Figure) {
			t.Errorf("in a pipe: no %q in\n%s", r.Figure, &out)
		}
	}
}

// A run of a part of a study, or of its quick form, is not whole: what it lacks says
// nothing on a claim.
func TestWhole(t *testing.T) {
	s, err := studies.Named("frameworks")
	if err != nil {
		t.Fatal(err)
	}
	part, err := s.Part([]string{"gin-1.9", "fiber-2.52"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		m    record.Manifest
		want bool
	}{
		{"whole", record.Manifest{Study: *s}, true},
		{"part", record.Manifest{Study: *part}, false},
		{"quick", record.Manifest{Study: *s, Quick: true}, false},
		{"somebody's own", record.Manifest{Study: study.Study{Name: "mine"}}, false},
	} {
		if got := whole(&tc.m); got != tc.want {
			t.Errorf("%s: got %t", tc.name, got)
		}
	}
}
