package runverb

import (
	"io"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// A run of which no trial of an arm, or of the control, counts has decided nothing, though
// some trials do count: it does not end as one that has.
func TestNothingDecided(t *testing.T) {
	arms := []study.Arm{{Name: "a"}, {Name: "b"}}
	for _, tc := range []struct {
		name    string
		arms    []study.Arm
		lost    string // arm whose trials do not count
		factor  float64
		decided bool
	}{
		{"a difference", arms, "", 1.5, true},
		{"none that shows", arms, "", 1, false},
		{"no trial of the arm", arms, "b", 1.5, false},
		{"no trial of the control", arms, "a", 1.5, false},
		{"nothing to decide", arms[:1], "", 1, true},
	} {
		s := study.Study{
			Name: "s", Control: "a", Twin: true, Threshold: 0.01, Arms: tc.arms,
			Workloads: []study.Workload{{Name: "w", Schedule: "closed"}}, Primary: study.Primary{Metric: "cpu_per_request", Workload: "w"},
		}
		run := &record.Run{Manifest: record.Manifest{Study: s, Outcome: "cap"}}
		for i := range 24 {
			tr := record.Trial{Seq: i, Block: i / 3, Arm: "a", Twin: i%3 == 1, Workload: "w", Requests: 20_000, Steady: true}
			value := 30_000 * (1 + 0.05*float64(i%5))
			if i%3 == 2 && len(tc.arms) > 1 {
				tr.Arm, value = "b", value*tc.factor
			}
			if tr.Metrics = map[string]float64{"cpu_per_request": value}; tr.Arm == tc.lost {
				tr.Invalid = []string{"it died"}
			}
			run.Trials = append(run.Trials, tr)
		}
		a, err := verdict.Analyse(run)
		if err != nil {
			t.Fatal(err)
		}
		if got := decidedAny(a); got != tc.decided || a.Trials.Valid == 0 {
			t.Errorf("%s: decided %t with %d valid trials, want %t: %s", tc.name, got, a.Trials.Valid, tc.decided, a.Headline)
		}
	}
}

// A run that tare ab began ends as one of tare ab when it is resumed: with the owners and the
// sizes of the programs. That of a study does not.
func TestResumedABEnds(t *testing.T) {
	for name, want := range map[string]bool{"ab": true, "s": false} {
		s := study.Study{
			Name: name, Control: "a", Threshold: 0.01, Arms: []study.Arm{{Name: "a"}, {Name: "b"}},
			Workloads: []study.Workload{{Name: "w", Schedule: "closed"}}, Primary: study.Primary{Metric: "cpu_per_request", Workload: "w"},
		}
		run := &record.Run{Dir: t.TempDir(), Manifest: record.Manifest{Study: s, Outcome: "cap", Command: []string{"tare", "run"},
			Programs: map[string]record.Program{"a": {Size: 8 << 20}, "b": {Size: 9 << 20}}}}
		for i := range 16 {
			run.Trials = append(run.Trials, record.Trial{Seq: i, Block: i / 2, Arm: s.Arms[i%2].Name, Workload: "w", Requests: 20_000, Steady: true,
				Metrics: map[string]float64{"cpu_per_request": 30_000 + float64(i)}})
		}
		var out strings.Builder
		_ = new(Command).finish(&cli.Terminal{Out: &out, Err: io.Discard}, &runs.Session{}, run, nil) // decided or not
		got := out.String()
		if strings.Contains(got, "Size of the program: a 8.00 MiB, b 9.00 MiB (+12.5 %).") != want || strings.Contains(got, "\nOwners\n") != want || !strings.Contains(got, "Repeat it") {
			t.Errorf("study %s: want an ending of ab %t, got\n%s", name, want, got)
		}
	}
}
