package lab

import (
	"math"
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// A cell is run again while the generator's lag voids what a claim's headline compares in
// a few of its trials; not where it voids most of them, nor for the sake of other metrics. What
// was refused is run again even so.
func TestLacksWhatClaimsDecideBy(t *testing.T) {
	s := &study.Study{
		Control: "none", Arms: []study.Arm{{Name: "none"}, {Name: "three"}, {Name: "other"}},
		Primary: study.Primary{Metric: "loop_time", Workload: "w"},
		Claims:  []study.Claim{{Checks: []study.Check{{Metric: "response_p95", Workload: "w", Arm: "three"}, {Metric: "response_p99", Workload: "w", Arm: "three"}}}},
	}
	for _, tc := range []struct {
		name, metric    string
		voided, refused int // blocks of eight, from the first and from the last on
		three, other    bool
	}{
		{"none voided", "response_p95", 0, 0, false, false},
		{"some voided", "response_p95", 3, 0, true, false},
		{"most voided", "response_p95", 7, 0, false, false},
		{"most voided, one refused", "response_p95", 7, 1, true, false},
		{"no headline's metric", "response_p99", 3, 0, false, false},
	} {
		r := &runner{Options: Options{Study: s}}
		for block := range 8 {
			for _, a := range s.Arms {
				l := record.Lagged{Response: 100, Lag: 1}
				if a.Name == "three" && block < tc.voided {
					l.Lag = 90
				}
				trial := record.Trial{Block: block, Workload: "w", Arm: a.Name, Readings: &record.Readings{Times: map[string]record.Lagged{tc.metric: l}}}
				if a.Name == "three" && block >= 8-tc.refused {
					trial.Invalid = []string{"achieved 7763 requests a second of 8000 offered"}
				}
				r.trials = append(r.trials, trial)
			}
		}
		for arm, want := range map[string]bool{"three": tc.three, "other": tc.other} {
			if got := r.lacks(study.Cell{Workload: "w", Arm: arm}, 8) > 0; got != want {
				t.Errorf("%s: arm %s: got %t, want %t", tc.name, arm, got, want)
			}
		}
	}
}

func TestLittle(t *testing.T) {
	for _, tt := range []struct{ n, x, r, want float64 }{
		{64, 32000, 0.002, 0},
		{64, 32000, 0.001, 0.5},
		{64, 0, 0, 1},
		{0, 0, 0, 0},
		{0, 100, 0.01, math.Inf(1)},
	} {
		if got := little(tt.n, tt.x, tt.r); got != tt.want {
			t.Errorf("little(%v, %v, %v) = %v, want %v", tt.n, tt.x, tt.r, got, tt.want)
		}
	}
}
