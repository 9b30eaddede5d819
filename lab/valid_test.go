package lab_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// sound is what came of ten seconds at 1,000 requests a second, of 1 ms each,
// with nothing to find fault with.
func sound() *load.Result {
	res := &load.Result{Elapsed: 10 * time.Second, Window: 10 * time.Second, Threads: 1, MeanFlight: 1,
		Response: hist.New(), Service: hist.New(), FirstByte: hist.New(), Generator: load.Generator{CPU: 4 * time.Second, Late: hist.New()}}
	for range 10_000 {
		res.Response.Record(int64(time.Millisecond))
		res.Late.Record(int64(10 * time.Microsecond))
	}
	res.Counts.Scheduled, res.Counts.Status[2], res.InTime, res.Within = 10_000, 10_000, 10_000, 10_000
	return res
}

// Slow requests at the end make no throughput lower by the time that they take: it is
// of the time in which requests began.
func TestThroughputOfSlow(t *testing.T) {
	for schedule, want := range map[string]float64{"constant": 999.6, "closed": 999.6} {
		res := sound()
		res.InTime, res.Within = res.InTime-4, res.Within-4
		res.Elapsed = 12500 * time.Millisecond // until the last of the four
		if got := lab.Throughput(schedule, 1000, res); math.Abs(got-want) > 0.01 {
			t.Errorf("%s: got %g requests a second, want %g", schedule, got, want)
		}
	}
}

// What a stall in the warm-up left is no higher throughput than was offered.
func TestThroughputOfCarried(t *testing.T) {
	res := sound()
	res.Carried = 2000
	if got := lab.Throughput("constant", 1000, res); got != 1000 {
		t.Errorf("got %g requests a second, want the 1000 offered", got)
	}
}

// faulty is a trial with something to find fault with, or nearly.
type faulty struct {
	name     string
	schedule string
	change   func(*load.Result)
	want     string // why it does not count; "": it does
}

// faults are each rule of docs/method.md by which a trial does not count, at its bound.
func faults() []faulty {
	lag := func(by time.Duration) func(*load.Result) {
		return func(r *load.Result) {
			r.Late = hist.New()
			for range 10_000 {
				r.Late.Record(int64(by))
			}
		}
	}
	answered := func(n uint64) func(*load.Result) {
		return func(r *load.Result) {
			r.Counts.Status[2], r.InTime, r.Within, r.MeanFlight = n, n, n, float64(n)/10_000
		}
	}
	late := func(n uint64, until time.Duration) func(*load.Result) {
		return func(r *load.Result) { // the last of n comes then
			r.InTime, r.Within = r.InTime-n, r.Within-n
			r.MeanFlight *= r.Elapsed.Seconds() / until.Seconds()
			r.Elapsed = until
		}
	}
	few := func(r *load.Result) {
		answered(9_600)(r)
		r.Counts.Scheduled = 9_600
	}
	return []faulty{
		{"sound", "constant", func(*load.Result) {}, ""},
		{"a wrong answer", "constant", func(r *load.Result) { r.Counts.Unverified = 1 }, "1 of 10,000 answers was not as the workload asks; by status: 10,000 2xx"},
		{"nothing answered", "constant", func(r *load.Result) { r.Counts.Status[2], r.Within = 0, 0 }, "no request was answered"},
		{"nothing answered within", "constant", func(r *load.Result) { r.Within = 0 }, "no request was answered within the measured part"},
		{"few failures", "constant", func(r *load.Result) { r.Counts.Status[2], r.Counts.Reset = 9_990, 10 }, ""},
		{"more failures", "closed", func(r *load.Result) { r.Counts.Status[2], r.Counts.Reset = 9_989, 11 }, "11 of 10,000 requests failed"},
		{"more failures that may be", "tolerant", func(r *load.Result) { r.Counts.Status[2], r.Counts.Reset = 9_600, 400 }, ""},
		{"busy generator", "constant", func(r *load.Result) { r.CPU = 7900 * time.Millisecond }, ""},
		{"too busy a generator", "constant", func(r *load.Result) { r.CPU = 8200 * time.Millisecond }, "the generator used 82 % of its CPUs"},
		{"stopped", "closed", func(r *load.Result) { r.Stopped = true }, "tare was stopped meanwhile"},
		{"some lag", "constant", lag(90 * time.Microsecond), ""},
		{"lag", "constant", lag(110 * time.Microsecond), ""},
		{"one late request", "constant", func(r *load.Result) { r.Late.Record(int64(time.Second)) }, ""},
		{"lag beside a slow answer", "constant", func(r *load.Result) {
			lag(110 * time.Microsecond)(r)
			r.Response.Record(int64(50 * time.Millisecond))
		}, ""},
		{"lag in a closed loop", "closed", lag(110 * time.Microsecond), ""},
		{"nearly the rate", "constant", answered(9_810), ""},
		{"not the rate", "constant", answered(9_790), "achieved 979 requests a second of 1000 offered"},
		{"few by chance", "poisson", few, ""},
		{"few", "constant", few, "achieved 960 requests a second of 1000 offered"},
		{"not the rate that chance gave", "poisson", func(r *load.Result) {
			few(r)
			answered(9_400)(r)
		}, "achieved 940 requests a second of 960 offered"},
		{"a few slow ones at the end", "constant", late(4, 11*time.Second), ""},
		{"a queue at the end", "constant", late(95, 10300*time.Millisecond), ""},
		{"a longer queue at the end", "constant", late(205, 10300*time.Millisecond), "achieved 980 requests a second of 1000 offered"},
		{"a stall at the end", "constant", late(1000, 10100*time.Millisecond), "achieved 900 requests a second of 1000 offered"},
		{"a queue carried from the warm-up", "constant", func(r *load.Result) {
			late(300, 10300*time.Millisecond)(r)
			r.Carried = 300
		}, ""},
		{"no rate asked for", "closed", answered(9_790), ""},
		{"Little", "constant", func(r *load.Result) { r.MeanFlight = 1.08 }, ""},
		{"not Little", "constant", func(r *load.Result) { r.MeanFlight = 1.2 }, "Little's law is off"},
	}
}

func TestFaults(t *testing.T) {
	for _, tc := range faults() {
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

// refusals are why a trial does not count, in a word each, as somebody finds it who has the
// run's folder alone and goes by the table of docs/run-folder.md.
func refusals(tr record.Trial, schedule string, rate, failures float64) (why []string) {
	r, requests, window := tr.Readings, float64(tr.Requests), tr.Readings.Window.Seconds()
	if r.Unverified > 0 {
		why = append(why, "answers")
	}
	if r.Within == 0 {
		return append(why, "no request")
	}
	if float64(r.Failed) > failures*float64(r.Scheduled) {
		return append(why, "failed")
	}
	if (r.CPU-r.Spun).Seconds()/(tr.Elapsed.Seconds()*float64(r.Threads)) > 0.8 {
		why = append(why, "the generator used")
	}
	if schedule != "closed" && schedule != "tolerant" {
		began := float64(r.Scheduled) / window
		if schedule == "poisson" {
			rate = min(rate, began)
		}
		achieved := max(float64(r.Within+r.Carried)/window, rate*(requests-2*(requests-float64(r.InTime)))/float64(r.Scheduled))
		if min(achieved, began) < 0.98*rate {
			why = append(why, "achieved")
		}
	}
	if mean := r.Times["response_mean"].Response / 1e9; math.Abs(r.MeanFlight-requests/tr.Elapsed.Seconds()*mean) > 0.1*r.MeanFlight {
		why = append(why, "Little's law")
	}
	return why
}

// Refusals can be found again from what a run's folder holds.
func TestRefusalsFollowFromReadings(t *testing.T) {
	for _, tc := range faults() {
		if tc.name == "stopped" {
			continue // which no figure shows
		}
		res := sound()
		tc.change(res)
		failures := 0.001
		if tc.schedule == "tolerant" {
			failures = 0.05
		}
		tr := lab.Kept(tc.schedule, 1000, res)
		got := refusals(tr, tc.schedule, 1000, failures)
		if len(got) != len(tr.Invalid) {
			t.Errorf("%s: the readings say %q, the trial %q", tc.name, got, tr.Invalid)
			continue
		}
		for i, why := range got {
			if !strings.Contains(tr.Invalid[i], why) {
				t.Errorf("%s: the readings say %q, the trial %q", tc.name, got, tr.Invalid)
			}
		}
		for metric, l := range tr.Readings.Times {
			_, kept := tr.Metrics[metric]
			if late := l.Lag > 0.1*l.Response; kept == late && len(tr.Metrics) > 0 {
				t.Errorf("%s: %s is kept: %t, and its lag is %v of %v ns", tc.name, metric, kept, l.Lag, l.Response)
			}
		}
	}
}

// Lag voids the response times that it distorts, and nothing else: what an arm costs
// does not depend on when it was asked.
func TestLagVoidsResponseTimesAlone(t *testing.T) {
	res := sound()
	res.Late = hist.New()
	for range 10_000 {
		res.Late.Record(int64(900 * time.Microsecond))
	}
	res.Response.Record(int64(time.Second)) // the maximum is not the lag's
	got := lab.Kept("constant", 1000, res)
	if len(got.Invalid) > 0 {
		t.Fatalf("got the reasons %q, want a trial that counts", got.Invalid)
	}
	for metric, want := range map[string]bool{
		"cpu_per_request": true, "throughput": true, "response_max": true,
		"response_mean": false, "response_p50": false, "response_p95": false, "response_p99": false,
	} {
		if _, ok := got.Metrics[metric]; ok != want {
			t.Errorf("%s: kept %t, want %t", metric, ok, want)
		}
		if !lab.Voided(metric, got) != want {
			t.Errorf("%s as the primary metric: to be run again %t, want %t", metric, !want, want)
		}
	}
	if l := got.Readings.Times["response_p95"]; math.Abs(l.Lag-9e5) > 1e4 || math.Abs(l.Response-1e6) > 1e4 {
		t.Errorf("on record for p95: %+v, want the lag of 0.9 ms beside the 1 ms that it voids", l)
	}
}
