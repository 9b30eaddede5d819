package tally_test

import (
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/tally"
)

// TestAgents counts trials, not the agents that had something to say about one.
func TestAgents(t *testing.T) {
	late := []string{"agent 10.0.0.7:7411 was late by 2.55 ms", "agent 10.0.0.8:7411 was late by 1.2 ms", "agent 10.0.0.8:7411 was busy"}
	got := tally.Of([]record.Trial{{Arm: "chi", Invalid: late}, {Arm: "chi", Invalid: late[:2]}, {Arm: "chi", Warnings: late}})
	if n := got.Invalid; len(n) != 2 || n[0].N != 2 || n[0].Reason != late[0] || n[1].N != 1 {
		t.Errorf("invalid: got %+v, want 2 late and 1 busy", n)
	}
	if n := got.Warning; len(n) != 2 || n[0].N != 1 || n[1].N != 1 {
		t.Errorf("warnings: got %+v, want 1 late and 1 busy", n)
	}
}

// TestRefusal has a sentence of one trial be one.
func TestRefusal(t *testing.T) {
	all := []record.Trial{{Arm: "chi"}, {Arm: "chi", Invalid: []string{"it died"}}}
	if got, want := tally.Of(all).Refusal(), "1 of 2 trials does not count, most often because it died"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUneven holds that trials which are refused far more often than the control's are warned of,
// and not those that are refused about as often: chance does that.
func TestUneven(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		tried, arm, reference int // trials of each, and how many of them are refused
		warned                bool
	}{
		{"a third of one arm's", 30, 10, 0, true}, {"a third of the control's", 30, 0, 10, true},
		{"as many of both", 30, 10, 9, false}, {"few", 30, 3, 0, false}, {"none", 30, 0, 0, false}, {"all of one arm's", 30, 30, 0, false},
	} {
		var all []record.Trial
		for i := range tt.tried {
			for arm, refused := range map[string]int{"none": tt.reference, "three": tt.arm} {
				trial := record.Trial{Block: i, Arm: arm, Workload: "half"}
				if i < refused {
					trial.Invalid = []string{"achieved 7763 requests a second of 8000 offered"}
				}
				all = append(all, trial, record.Trial{Block: -1, Arm: arm, Invalid: []string{"the pilot"}})
			}
		}
		if got := tally.Uneven(all, "none"); len(got) > 0 != tt.warned {
			t.Errorf("%s: got %v, want warned: %v", tt.name, got, tt.warned)
		}
	}
}
