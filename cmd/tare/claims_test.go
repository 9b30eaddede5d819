package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/studies"
)

func TestClaimFigures(t *testing.T) {
	p95, _ := study.MetricNamed("response_p95")
	compared := &verdict.Comparison{Metric: p95, Scale: verdict.Ratio, N: 8}
	compared.Effect.Effect, compared.Effect.Interval = 0, stats.Interval{}
	compared.Difference = verdict.Estimate{Value: 3100, Interval: stats.Interval{Lo: -1000, Hi: 8000}}
	level := &verdict.Estimate{Value: 1200, Interval: stats.Interval{Lo: 1000, Hi: 1400}}
	withheld := &verdict.Comparison{Metric: p95, Withheld: "other rates"}
	f := func(v float64) *float64 { return &v }
	on := func(k study.Check) study.Check { k.Metric = p95.Name; return k }
	tests := []struct {
		name                          string
		r                             verdict.CheckResult
		published, measured, interval string
	}{
		{"levels", verdict.CheckResult{Check: on(study.Check{PublishedArm: f(159e3), PublishedAgainst: f(121.8e3)}), Comparison: compared}, "+37.2 µs", "+3.10 µs", "-1.00 µs to +8.00 µs"},
		{"difference", verdict.CheckResult{Check: on(study.Check{PublishedDifference: f(6600)}), Comparison: compared}, "+6.60 µs", "+3.10 µs", "-1.00 µs to +8.00 µs"},
		{"ratio", verdict.CheckResult{Check: on(study.Check{PublishedRatio: f(.69)}), Comparison: compared}, "-31.0 %", "0.0 %", "0.0 to 0.0 %"},
		{"direction", verdict.CheckResult{Check: on(study.Check{Direction: "less"}), Comparison: compared}, "less", "+3.10 µs", "-1.00 µs to +8.00 µs"},
		{"bound", verdict.CheckResult{Check: on(study.Check{Kind: study.Bound, Op: ">=", Bound: f(18700)}), Measured: level}, ">= 18.7 µs", "1.20 µs", "1.00 µs to 1.40 µs"},
		{"interaction", verdict.CheckResult{Check: on(study.Check{Kind: study.Interaction, Direction: "more"}), Measured: level}, "more", "+1.20 µs", "+1.00 µs to +1.40 µs"},
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
	dir := keepTuning(t)
	var out strings.Builder
	c := &claimsCmd{Dir: dir}
	if err := c.Run(&terminal{out: &out, err: io.Discard, width: 120}); err != nil {
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
		"P1.nesting": "run nesting +37.2 µs Three",
	} {
		if !strings.Contains(rows[name], want) {
			t.Errorf("row %s is %q, want %q in it", name, rows[name], want)
		}
	}
	out.Reset()
	c = &claimsCmd{Dir: dir, IDs: []string{"P5.tuning"}, JSON: true}
	if err := c.Run(&terminal{out: &out, err: io.Discard, width: 120}); err != nil {
		t.Fatal(err)
	}
	var got []claimRow
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got) != 1 {
		t.Fatalf("%d rows, %v, want one of %s", len(got), err, out.String())
	}
	if r := got[0]; r.Metric != "throughput" || r.Figure != "+11,355/s" || r.Measured != "+100/s" || r.Interval == "" {
		t.Errorf("got %+v, want the figures of its first check", r)
	}
}

// keepTuning keeps a run of study tuning in which tuned answers a hundred
// requests a second more, and returns the folder that it is in.
func keepTuning(t *testing.T) string {
	t.Helper()
	s, err := studies.Named("tuning")
	if err != nil {
		t.Fatal(err)
	}
	first := s.Claims[0].Checks[0]
	dir := t.TempDir()
	w, err := record.Create(filepath.Join(dir, "kept"), record.Manifest{ID: "kept", Study: *s, Seed: 1, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for seq := range 16 {
		tr := record.Trial{Seq: seq, Block: seq / 2, Workload: first.Workload, Arm: s.Control, Steady: true, Metrics: map[string]float64{first.Metric: 10000}}
		if seq%2 == 1 {
			tr.Arm, tr.Metrics = first.Arm, map[string]float64{first.Metric: 10100}
		}
		if err := w.Append(tr, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish("cap"); err != nil {
		t.Fatal(err)
	}
	return dir
}
