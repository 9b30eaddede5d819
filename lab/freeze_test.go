package lab_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
)

// An arm that freezes gets no better figures for it: answers count within the measured
// part, and a stall is no excuse for what comes after its end.
func TestFreeze(t *testing.T) {
	const rate = 400
	for _, tc := range []struct {
		schedule string
		mode     string // from its first request on
		want     string // why it does not count; "": it does
	}{
		{"constant", "400ms freezes 500ms", ""}, // all answered within
		{"constant", "900ms freezes 2s", "requests a second of 400 offered"},
		{"constant", "100ms freezes 5s", "no request was answered within the measured part"},
		{"closed", "400ms freezes 500ms", ""},
		{"closed", "100ms freezes 5s", "no request was answered within the measured part"},
	} {
		t.Run(tc.schedule+" "+tc.mode, func(t *testing.T) {
			t.Parallel()
			s := small(t, tc.mode, "ok")
			s.Twin, s.Workloads = false, s.Workloads[1:]
			s.Workloads[0].Schedule, s.Workloads[0].Connections = tc.schedule, 16
			s.Workloads[0].Rate = study.Rate{PerSecond: rate}
			s.Primary.Workload = "open"
			s.Trial = study.Trial{WarmUp: 250 * time.Millisecond, Measure: 2 * time.Second, Slice: 100 * time.Millisecond}
			got, err := lab.OneTrial(t.Context(), options(t, s), rate)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tc.want != "" && !strings.Contains(strings.Join(got.Invalid, "; "), tc.want):
				t.Errorf("got the reasons %q, want %q", got.Invalid, tc.want)
			case tc.want == "" && len(got.Invalid) > 0:
				t.Errorf("got the reasons %q, want none", got.Invalid)
			}
			var within uint64
			for _, sl := range got.Series {
				within += sl.Answered
			}
			r := got.Readings
			within -= got.Requests - r.Within // what came after is in the last slice
			if x := got.Metrics["throughput"]; tc.schedule == "closed" && math.Abs(x-float64(within+r.Carried)/r.Window.Seconds()) > 1 {
				t.Errorf("got a throughput of %.0f/s, want that of the %d answers in %v", x, within, r.Window)
			}
			if x := got.Metrics["throughput"]; tc.schedule != "closed" && tc.want != "" && x > 0.9*rate {
				t.Errorf("got a throughput of %.0f/s of a server that was frozen, offered %d/s", x, rate)
			}
		})
	}
}
