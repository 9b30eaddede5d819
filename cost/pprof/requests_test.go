package pprof_test

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost/pprof"
)

// TestRequests writes the number into a profile and reads it back, through a
// profile that others wrote comments into.
func TestRequests(t *testing.T) {
	raw := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Comments:   []string{"tare requests many", "another's"},
	}
	for _, want := range []float64{0, 12, 120_000.5, 7, 0} {
		var b bytes.Buffer
		if err := raw.Write(&b); err != nil {
			t.Fatal(err)
		}
		p, err := pprof.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		p.SetRequests(3) // replaced by the next
		p.SetRequests(want)
		b.Reset()
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := pprof.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Requests(); got != want {
			t.Errorf("requests written as %g are read as %g", want, got)
		}
	}
}
