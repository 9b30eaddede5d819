package lab_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// Where the generator came to its limit first, the run says what to ask instead.
func TestLimited(t *testing.T) {
	busy := func(workload string) record.Trial {
		return record.Trial{Workload: workload, Invalid: []string{"the generator was busy"}, Metrics: map[string]float64{"generator_cpu": 0.9}}
	}
	counts, pilot, died := busy("closed"), busy("closed"), busy("closed")
	counts.Invalid, pilot.Block, died.Metrics["generator_cpu"] = nil, -1, 0.7
	for _, tt := range []struct {
		name   string
		kind   study.Kind
		trials []record.Trial
		want   []string // in the texts, one each
	}{
		{"closed", study.Servers, []record.Trial{busy("closed"), busy("closed")}, []string{"workload closed: the generator came to its limit before an arm did"}},
		{"open", study.Servers, []record.Trial{busy("open")}, []string{"offer a lower rate"}},
		{"both", study.Servers, []record.Trial{busy("open"), busy("closed")}, []string{"`schedule: constant` with `rate: 50%`", "workload open"}},
		{"other reasons", study.Servers, []record.Trial{counts, pilot, died}, nil},
		{"generators", study.Generators, []record.Trial{busy("closed")}, nil},
	} {
		got := lab.Limited(tt.kind, tt.trials...)
		if len(got) != len(tt.want) {
			t.Errorf("%s: got %q, want %d", tt.name, got, len(tt.want))
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: got %q, want %q", tt.name, got[i], want)
			}
		}
	}
}
