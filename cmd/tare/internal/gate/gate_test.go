package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
	"github.com/tarehq/tare/cmd/tare/internal/publish"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cmd/tare/internal/runs/runstest"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
)

// gated is the gate of an arm's CPU per request that came out so.
func gated(arm string, result bound.Outcome) verdict.Gated {
	m, _ := study.MetricNamed("cpu_per_request")
	c := &verdict.Comparison{Metric: m, Workload: "half", Arm: arm, Scale: verdict.Ratio, N: 8}
	c.Effect.Effect = math.Log(1.25)
	c.Effect.Interval = stats.Interval{Lo: math.Log(1.125), Hi: math.Inf(1)}
	return verdict.Gated{Comparison: c, Budget: 0.05, Result: result}
}

// unheld is the gate of an arm that could not be held against its budget.
func unheld(arm string) verdict.Gated {
	m, _ := study.MetricNamed("response_p99")
	c := &verdict.Comparison{Metric: m, Workload: "half", Arm: arm, Withheld: "it takes 1,000 requests a trial; the least was 668"}
	return verdict.Gated{Comparison: c, Budget: 0.05, Result: bound.Inconclusive}
}

func TestGateDecides(t *testing.T) {
	const held, failed, undecided = bound.Held, bound.Failed, bound.Inconclusive
	type gates []verdict.Gated
	tests := []struct {
		name         string
		first, again gates
		status       int
		results      string // of the rows
		hint         string
	}{
		{"all pass", gates{gated("a", held), gated("b", held)}, nil, 0, "held held", ""},
		{"one undecided", gates{gated("a", held), gated("b", undecided)}, nil, cli.ExitInconclusive, "held inconclusive", "more blocks"},
		{"failed in a run alone", gates{gated("a", failed)}, nil, cli.ExitInconclusive, "inconclusive", "gate the study"},
		{"failed twice", gates{gated("a", held), gated("b", failed)}, gates{gated("a", held), gated("b", failed)}, cli.ExitThreshold, "held failed", ""},
		{"failed once", gates{gated("a", failed)}, gates{gated("a", held)}, cli.ExitInconclusive, "inconclusive", "first run only"},
		{"failed, then undecided", gates{gated("a", failed)}, gates{gated("a", undecided)}, cli.ExitInconclusive, "inconclusive", "first run only"},
		{"another arm failed then", gates{gated("a", failed), gated("b", held)}, gates{gated("a", held), gated("b", failed)}, cli.ExitInconclusive, "inconclusive held", "first run only"},
		{"failed beside an undecided", gates{gated("a", failed), gated("b", undecided)}, gates{gated("a", failed), gated("b", held)}, cli.ExitThreshold, "failed inconclusive", ""},
		{"not there any more", gates{gated("a", failed)}, gates{}, cli.ExitInconclusive, "inconclusive", "first run only"},
		{"nothing to hold", gates{unheld("a")}, nil, cli.ExitInconclusive, "inconclusive", "tare report"},
		{"one not to hold", gates{gated("a", held), unheld("a")}, nil, cli.ExitInconclusive, "held inconclusive", "tare report"},
		{"one not to hold, one undecided", gates{gated("a", undecided), unheld("b")}, nil, cli.ExitInconclusive, "inconclusive inconclusive", "more blocks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			c := &Cmd{JSON: true}
			err := c.decide(t.Context(), &cli.Terminal{Out: &out, Err: io.Discard}, &publish.Result{Gates: tt.first}, tt.again)
			var f *cli.Failure
			if errors.As(err, &f); f == nil {
				f = &cli.Failure{}
			}
			if f.Status != tt.status || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("got status %d, hint %q, want %d, %q", f.Status, f.Hint, tt.status, tt.hint)
			}
			var rows []entry
			if err := json.Unmarshal([]byte(out.String()), &rows); err != nil {
				t.Fatal(err)
			}
			var results []string
			for _, r := range rows {
				results = append(results, r.Result)
			}
			if got := strings.Join(results, " "); got != tt.results {
				t.Errorf("got rows %q, want %q", got, tt.results)
			}
		})
	}
}

func TestGateRows(t *testing.T) {
	failed := []verdict.Gated{gated("a", bound.Failed)}
	rows := gateRows(publish.Confirm(failed, failed))
	text, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"metric":"cpu_per_request","workload":"half","arm":"a","budget":0.05,"effect":0.25,"lo":0.125,"hi":null,"blocks":8,"result":"failed","again":"failed"}]`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestGateTellsWhy(t *testing.T) {
	leftOut := unheld("c")
	leftOut.Workload, leftOut.Withheld = "", "it took no part"
	rows := gateRows([]verdict.Gated{gated("a", bound.Held), unheld("b"), leftOut})
	var out strings.Builder
	if err := (&Cmd{}).print(&cli.Terminal{Out: &out, Err: io.Discard, Width: 120}, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	want := []string{
		"  response_p99 of b, workload half: it takes 1,000 requests a trial; the least was 668",
		"  response_p99 of c: it took no part",
	}
	if len(lines) != 6 || !slices.Equal(lines[4:], want) {
		t.Errorf("got\n%s\nwant three rows, and why nothing is known of b and c", out.String())
	}
	if text, err := json.Marshal(rows[1]); err != nil || !strings.Contains(string(text), `"effect":null,"lo":null,"hi":null,"blocks":0`) {
		t.Errorf("got %s, %v, want an effect that is null", text, err)
	}
}

func TestGateBudgets(t *testing.T) {
	tests := []struct {
		max  runs.Budgets
		want string
	}{
		{nil, `[{"Metric":"loop_time","Harm":0.05}]`},
		{runs.Budgets{"rss_peak": .5, "cpu_per_request": 0}, `[{"Metric":"cpu_per_request","Harm":0},{"Metric":"rss_peak","Harm":0.5}]`},
		{runs.Budgets{"startup": 2.5}, `[{"Metric":"startup","Harm":2.5}]`},
		{runs.Budgets{"throughput": 1}, "a budget is below 100 %"},
		{runs.Budgets{"cpu": .05}, `no metric is called "cpu"`},
	}
	for _, tt := range tests {
		budgets, err := (&Cmd{Max: tt.max}).budgets("loop_time")
		got, _ := json.Marshal(budgets)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), tt.want) {
			t.Errorf("--max %v: got %s, want %s", tt.max, got, tt.want)
		}
	}
}

// A gate that is stopped names the folder of what it has measured, if it has.
func TestGateStopped(t *testing.T) {
	run, full := runstest.Interrupted(t), errors.New("no space left on device")
	gated := &Cmd{Max: runs.Budgets{"rss_peak": .075, "cpu_per_request": .03}, StudyFlags: runs.StudyFlags{Blocks: 8}}
	confirming := &Cmd{failed: "runs/first"}
	if f := confirming.session().Interrupted(run, nil); f.Hint != "continue with `tare gate --resume runs/first`" {
		t.Errorf("of a second run: got the hint %q, want that the first is continued, which a second confirms", f.Hint)
	}
	if f, ok := errors.AsType[*cli.Failure](confirming.explain(confirming.session(), nil, context.Canceled)); !ok || f.Status != cli.ExitInterrupted || f.Hint != "continue with `tare gate --resume runs/first`" {
		t.Errorf("of a second run without a trial: got %+v, want that the first is continued", f)
	}
	again := "continue with `tare gate --resume " + run.Dir + " --max cpu_per_request=3 --max rss_peak=7.5 --blocks 8`"
	for _, tt := range []struct {
		run    *record.Run
		by     error
		status int
		hint   string // "" = none
	}{
		{run, fmt.Errorf("running trial 1: %w", context.Canceled), cli.ExitInterrupted, again},
		{run, full, cli.ExitFailed, "solve that, then " + again},
		{nil, context.Canceled, cli.ExitInterrupted, ""},
		{nil, full, cli.ExitFailed, ""},
	} {
		var said strings.Builder
		got := cli.PrintError(&cli.Terminal{Err: &said}, gated.explain(gated.session(), tt.run, tt.by))
		if got != tt.status || !strings.Contains(said.String(), tt.hint) || strings.Contains(said.String(), "hint") != (tt.hint != "") {
			t.Errorf("%v: got exit status %d and %q, want %d and %q", tt.by, got, said.String(), tt.status, tt.hint)
		}
	}
}

func TestTableWidths(t *testing.T) {
	clitest.CheckWidths(t, func(w io.Writer, width int) {
		err := (&Cmd{}).print(&cli.Terminal{Out: w, Width: width}, []entry{
			{Metric: "cpu_per_request", Workload: "browser", Arm: "serve-reuse", Budget: 0.05, Blocks: 8, Result: "held", figure: "-69.2 %", span: "-75.3 to -63.0 %"},
			{Metric: "pss", Budget: 0.05, Result: "inconclusive", Why: "no workload of the run measures it", figure: "–", span: "–"},
		})
		if err != nil {
			t.Error(err)
		}
	}, "held", "serve-reuse", "-69.2 %", "inconclusive", "no workload")
}

// Each row has the level of its interval, in text and in JSON.
func TestRowsHaveTheirLevel(t *testing.T) {
	m, _ := study.MetricNamed("cpu_per_request")
	c := &verdict.Comparison{Metric: m, Workload: "half", Arm: "api", Scale: verdict.Ratio, N: 8, Alpha: 0.012, Difference: verdict.Estimate{Level: 0.988}}
	rows := gateRows([]verdict.Gated{{Comparison: c, Budget: 0.05, Result: "held"}})
	open := new(*c)
	open.Anytime, open.Difference.Anytime = true, true
	unfinished := gateRows([]verdict.Gated{{Comparison: open, Budget: 0.05, Result: "held"}})
	for _, tc := range []struct {
		rows  []entry
		json  bool
		width int
		want  string
	}{
		{rows, false, 200, "0.0 to 0.0 % (98.8 %)"}, {rows, false, 40, "interval"}, {rows, true, 80, `"level": 0.988`},
		{unfinished, false, 200, "0.0 to 0.0 % (98.8 % anytime)"}, {unfinished, true, 80, `"anytime": true`},
	} {
		var out strings.Builder
		if err := (&Cmd{JSON: tc.json}).print(&cli.Terminal{Out: &out, Width: tc.width}, tc.rows); err != nil || !strings.Contains(out.String(), tc.want) {
			t.Errorf("width %d, JSON %v: got %q, %v, want %q", tc.width, tc.json, out.String(), err, tc.want)
		}
	}
}
