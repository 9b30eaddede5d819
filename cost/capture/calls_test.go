package capture

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
)

// TestPlan keeps the timing of calls within its budget.
func TestPlan(t *testing.T) {
	tests := []struct {
		forecast, most, want float64 // want: of the time; 0: not at all
	}{
		{0.02, 5, 1},
		{0.05, 5, 1},
		{0.1, 5, 0.5},
		{0.1, 8, 0.8},
		{0.5, 5, 0.1},
		{0.51, 5, 0},
	}
	for _, tt := range tests {
		o, err := Calls{For: 2 * time.Second, MaxOverhead: tt.most / 100}.plan(&probe.Forecast{Share: tt.forecast})
		if tt.want == 0 {
			if err == nil || !strings.Contains(err.Error(), "more than 5.0 %") {
				t.Errorf("forecast %v of %v %%: got %+v, %v, want it refused", tt.forecast, tt.most, o, err)
			}
			continue
		}
		// What is attached in all: windows begin as long as there is time, and
		// beginning one takes more than a millisecond.
		windows := 0
		for at := time.Duration(0); at < o.For-time.Millisecond; at += time.Duration(float64(o.Window) / o.Share) {
			windows++
		}
		attached := float64(time.Duration(windows)*o.Window) / float64(o.For)
		if err != nil || math.Abs(o.Share-tt.want) > 1e-9 || math.Abs(attached-tt.want) > 0.01 {
			t.Errorf("forecast %v of %v %%: got %+v, %v, attached for %v of the time, want %v", tt.forecast, tt.most, o, err, attached, tt.want)
		}
	}
}
