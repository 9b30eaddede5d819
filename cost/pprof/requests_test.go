package pprof_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost/pprof"
)

// TestRequests writes the number into a profile and reads it back, through a
// profile that others wrote comments into.
func TestRequests(t *testing.T) {
	raw := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Comments:   []string{"tare requests many", "tare requests many ± 3", "another's", "tare counted yesterday"},
	}
	for _, want := range [][2]float64{{0, 0}, {12, 0}, {120_000.5, 33.25}, {7, 0}, {0, 0}} {
		var b bytes.Buffer
		if err := raw.Write(&b); err != nil {
			t.Fatal(err)
		}
		p, err := pprof.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		p.SetRequests(3, 1) // replaced by the next
		p.SetRequests(want[0], want[1])
		var counted time.Time
		if want[0] > 0 {
			counted = time.Unix(0, int64(1e18+want[0]))
		}
		p.SetCounted(time.Unix(1, 0))
		p.SetCounted(counted)
		b.Reset()
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := pprof.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if n, margin := again.Requests(); n != want[0] || margin != want[1] {
			t.Errorf("requests written as %g ± %g are read as %g ± %g", want[0], want[1], n, margin)
		}
		if at := again.Counted(); !at.Equal(counted) {
			t.Errorf("counted at %v is read as %v", counted, at)
		}
	}
}
