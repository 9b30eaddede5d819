package lab_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// sound is what came of ten seconds at 1,000 requests a second, of 1 ms each,
// with nothing to find fault with.
func sound() *load.Result {
	res := &load.Result{
		Elapsed: 10 * time.Second, Threads: 1, CPU: 4 * time.Second, MeanFlight: 1,
		Response: hist.New(), Service: hist.New(), Late: hist.New(), FirstByte: hist.New(),
	}
	for range 10_000 {
		res.Response.Record(int64(time.Millisecond))
		res.Late.Record(int64(10 * time.Microsecond))
	}
	res.Counts.Scheduled, res.Counts.Status[2], res.InTime = 10_000, 10_000, 10_000
	return res
}

// Slow requests at the end make no throughput in the open loop lower: it was offered,
// and answered.
func TestThroughputOfSlow(t *testing.T) {
	for schedule, want := range map[string]float64{"constant": 999.2, "closed": 800} {
		res := sound()
		res.InTime -= 4
		res.Elapsed = 12500 * time.Millisecond // until the last of the four
		if got := lab.Throughput(schedule, 1000, res); math.Abs(got-want) > 0.01 {
			t.Errorf("%s: got %g requests a second, want %g", schedule, got, want)
		}
	}
}

// Each rule of docs/method.md by which a trial does not count, at its bound.
func TestFaults(t *testing.T) {
	lag := func(by time.Duration) func(*load.Result) {
		return func(r *load.Result) {
			r.Late = hist.New()
			for range 10_000 {
				r.Late.Record(int64(by))
			}
		}
	}
	answered := func(n uint64) func(*load.Result) {
		return func(r *load.Result) { r.Counts.Status[2], r.InTime, r.MeanFlight = n, n, float64(n)/10_000 }
	}
	late := func(n uint64, until time.Duration) func(*load.Result) {
		return func(r *load.Result) { // the last of n comes then
			r.InTime -= n
			r.MeanFlight *= r.Elapsed.Seconds() / until.Seconds()
			r.Elapsed = until
		}
	}
	tests := []struct {
		name     string
		schedule string
		change   func(*load.Result)
		want     string // "": it counts
	}{
		{"sound", "constant", func(*load.Result) {}, ""},
		{"a wrong answer", "constant", func(r *load.Result) { r.Counts.Unverified = 1 }, "1 of 10000 answers was not as the workload asks"},
		{"nothing answered", "constant", func(r *load.Result) { r.Counts.Status[2] = 0 }, "no request was answered"},
		{"few failures", "constant", func(r *load.Result) { r.Counts.Status[2], r.Counts.Reset = 9_990, 10 }, ""},
		{"more failures", "closed", func(r *load.Result) { r.Counts.Status[2], r.Counts.Reset = 9_989, 11 }, "11 of 10000 requests failed"},
		{"more failures that may be", "tolerant", func(r *load.Result) { r.Counts.Status[2], r.Counts.Reset = 9_600, 400 }, ""},
		{"busy generator", "constant", func(r *load.Result) { r.CPU = 7900 * time.Millisecond }, ""},
		{"too busy a generator", "constant", func(r *load.Result) { r.CPU = 8200 * time.Millisecond }, "the generator used 82 % of its CPUs"},
		{"stopped", "closed", func(r *load.Result) { r.Stopped = true }, "tare was stopped meanwhile"},
		{"some lag", "constant", lag(90 * time.Microsecond), ""},
		{"lag", "constant", lag(110 * time.Microsecond), "lag at p50"},
		{"one late request", "constant", func(r *load.Result) { r.Late.Record(int64(time.Second)) }, ""},
		{"lag beside a slow answer", "constant", func(r *load.Result) {
			lag(110 * time.Microsecond)(r)
			r.Response.Record(int64(50 * time.Millisecond))
		}, "lag at p50"},
		{"lag in a closed loop", "closed", lag(110 * time.Microsecond), ""},
		{"nearly the rate", "constant", answered(9_810), ""},
		{"not the rate", "constant", answered(9_790), "achieved 979 requests a second of 1000 offered"},
		{"a few slow ones at the end", "constant", late(4, 11*time.Second), ""},
		{"a queue at the end", "constant", late(95, 10300*time.Millisecond), ""},
		{"a longer queue at the end", "constant", late(105, 10300*time.Millisecond), "achieved 979 requests a second of 1000 offered"},
		{"a queue that is soon answered", "constant", late(1000, 10100*time.Millisecond), ""},
		{"no rate asked for", "closed", answered(9_790), ""},
		{"Little", "constant", func(r *load.Result) { r.MeanFlight = 1.08 }, ""},
		{"not Little", "constant", func(r *load.Result) { r.MeanFlight = 1.2 }, "Little's law is off"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			res := sound()
			tc.change(res)
			got := lab.Faults(tc.schedule, 1000, res)
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("got %q, want %q alone", got, tc.want)
			}
		})
	}
}
