package verdict_test

import (
	"testing"

	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

func TestGate(t *testing.T) {
	u := base()
	u.effect("three", "cpu_per_request", 1.10)
	u.level["loop_allocs"] = 0
	r := u.run()
	for i := range r.Trials { // throughput falls by a tenth
		if tr := &r.Trials[i]; tr.Arm == "three" {
			tr.Metrics["throughput"] *= 0.9
		}
	}
	a := analyse(t, r)
	for _, tc := range []struct {
		metric string
		harm   float64
		want   stats.GateResult // "" = no gate
	}{
		{"cpu_per_request", 0.05, stats.Failed},
		{"cpu_per_request", 0.20, stats.Passed},
		{"cpu_per_request", 0.10, stats.Undecided},
		{"throughput", 0.05, stats.Failed},
		{"throughput", 0.11, stats.Passed},
		{"loop_allocs", 0.05, ""},
		{"pss", 0.05, ""},
	} {
		got := a.Gate([]verdict.Budget{{Metric: tc.metric, Harm: tc.harm}}, stats.StudyAlpha)
		if tc.want == "" {
			if len(got) != 0 {
				t.Errorf("%s: got %d gates, want none", tc.metric, len(got))
			}
			continue
		}
		if len(got) != 1 || got[0].Result != tc.want || got[0].Arm != "three" {
			t.Errorf("%s, budget %v: got %+v, want %s", tc.metric, tc.harm, got, tc.want)
		}
	}
}

func TestFloors(t *testing.T) {
	a := analyse(t, base().run())
	floors, blocks := a.Floors()
	if blocks != 8 || floors["cpu_per_request"] != a.Primary().Floor {
		t.Errorf("got %v of %d blocks, want the primary metric's %v of 8", floors, blocks, a.Primary().Floor)
	}
}
