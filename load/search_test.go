package load_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// system answers o's rate within 1 ms up to capacity, and within 1 s above.
func system(o load.Options, capacity float64) *load.Result {
	rate := o.Schedule.RateAt(0)
	n := uint64(rate * o.Duration.Seconds())
	r := &load.Result{Elapsed: o.Duration, Response: hist.New()}
	r.Service = r.Response
	r.Counts.Scheduled, r.Counts.Status[2] = n, n
	if rate <= capacity {
		r.Response.RecordN(1e6, n)
	} else {
		r.Response.RecordN(1e9, n)
	}
	load.AnswersAfter(r, hist.New())
	return r
}

// halfLate answers o's rate within 1 ms, but half of it after the end, for the
// generator was the bottleneck.
func halfLate(o load.Options) *load.Result {
	r := system(o, 1e9)
	r.Elapsed, r.Bound = 2*r.Elapsed, true
	after := hist.New()
	after.RecordN(int64(o.Duration), r.Counts.Scheduled/2)
	r.Late = after
	load.AnswersAfter(r, after)
	return r
}

// A generator that was late is why a rate does not hold only where the threshold would
// hold but for that; one that was busy may have made the service times its own.
func TestFindMaxBound(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name, threshold   string
		response, service time.Duration
		dropped, failed   uint64 // of 1000
		cpu               time.Duration
		after, late       time.Duration // of all answers
		bound             bool
		want              string
	}{
		{"late", "p99<50ms", 60 * ms, 40 * ms, 0, 0, 0, 0, 0, true, "threshold not held, but the generator was late"},
		{"late, and the target slow", "p99<50ms", 70 * ms, 60 * ms, 0, 0, 0, 0, 0, false, "threshold not held"},
		{"busy", "p99<50ms", 70 * ms, 60 * ms, 0, 0, 900 * ms, 0, 0, true, "threshold not held, but the generator was late"},
		{"late, and too few answers", "p99<50ms", 40 * ms, 30 * ms, 0, 0, 0, time.Second, time.Second / 10, true, "the generator was the bottleneck: 0.0/s answered"},
		{"busy, and too few answers", "p99<50ms", 40 * ms, 30 * ms, 0, 0, 900 * ms, time.Second, 2 * ms, true, "the generator was the bottleneck: 0.0/s answered"},
		{"late, but not by as many as are missing", "p99<50ms", 40 * ms, 30 * ms, 0, 0, 0, time.Second, 2 * ms, false, "the rate was not reached: 0.0/s answered"},
		{"late, too few answers, and these slow", "p99<50ms", 70 * ms, 60 * ms, 0, 0, 0, time.Second, time.Second / 10, false, "the rate was not reached: 0.0/s answered"},
		{"dropped", "errors<1%", 2 * ms, 1 * ms, 15, 0, 0, 0, 0, true, "threshold not held, but the generator was late"},
		{"failed", "errors<1%", 2 * ms, 1 * ms, 0, 15, 0, 0, 0, false, "threshold not held"},
		{"held", "p99<50ms", 40 * ms, 1 * ms, 0, 0, 0, 0, 0, false, ""},
	} {
		res, err := load.FindMaxWith(context.Background(), load.SearchOptions{Threshold: tt.threshold, From: 1000, To: 1000, Step: time.Second},
			func(_ context.Context, o load.Options) (*load.Result, error) {
				n := uint64(1000 * o.Duration.Seconds())
				r := &load.Result{Elapsed: o.Duration, Threads: 1, Response: hist.New(), Service: hist.New(), Generator: load.Generator{Bound: true, CPU: tt.cpu}}
				r.Counts = load.Counts{Scheduled: n, Dropped: tt.dropped, Reset: tt.failed}
				r.Counts.Status[2] = n - tt.dropped - tt.failed
				r.Response.RecordN(int64(tt.response), r.Counts.Status[2])
				r.Service.RecordN(int64(tt.service), r.Counts.Status[2])
				after := hist.New()
				if tt.after > 0 {
					after.RecordN(int64(tt.after), r.Counts.Status[2])
				}
				r.Late = hist.New()
				r.Late.Record(int64(tt.late))
				load.AnswersAfter(r, after)
				return r, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if p := res.Probes[0]; p.Bound != tt.bound || p.Reason != tt.want {
			t.Errorf("%s: got bound %t, %q; want %t, %q", tt.name, p.Bound, p.Reason, tt.bound, tt.want)
		}
	}
}

// queue answers o's rate one after the other, capacity a second, each takes longer.
func queue(o load.Options, capacity float64, takes time.Duration) *load.Result {
	r, after := &load.Result{Response: hist.New()}, hist.New()
	gap, work := time.Duration(1e9/o.Schedule.RateAt(0)), time.Duration(1e9/capacity)
	var free time.Duration
	for at := time.Duration(0); at < o.Duration; at += gap {
		free = max(free, at) + work
		r.Elapsed = max(o.Duration, free+takes)
		r.Counts.Scheduled++
		r.Response.Record(int64(free + takes - at))
		if late := free + takes - o.Duration; late > 0 {
			after.Record(int64(late))
		}
	}
	r.Counts.Status[2] = r.Counts.Scheduled
	load.AnswersAfter(r, after)
	return r
}

// A queue that grows to the end of a probe does not hold, though all of it is answered
// in the end; a server that takes its time does.
func TestFindMaxQueue(t *testing.T) {
	for _, takes := range []time.Duration{0, 3 * time.Second} {
		const capacity = 1234
		res, err := load.FindMaxWith(context.Background(), load.SearchOptions{Threshold: "errors<1%"},
			func(_ context.Context, o load.Options) (*load.Result, error) { return queue(o, capacity, takes), nil })
		if err != nil {
			t.Fatal(err)
		}
		if res.Rate > capacity*1.05 || res.Rate < capacity/1.05 || !res.Confirmed {
			t.Errorf("answers that take %v: got %g, confirmed %v; want within 5 %% of %d", takes, res.Rate, res.Confirmed, capacity)
		}
	}
}

// A server that answers 50 a second at most is asked for 200.
func TestFindMaxSlowServer(t *testing.T) {
	var one sync.Mutex
	o, _ := serve(t, 0, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		one.Lock()
		defer one.Unlock()
		time.Sleep(20 * time.Millisecond)
	}))
	res, err := load.FindMax(context.Background(), o, load.SearchOptions{Threshold: "errors<1%", From: 200, To: 200, Step: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	p := res.Probes[0]
	if got, all := p.Result.InTime, p.Result.Counts.Scheduled; p.Held || got > all*9/10 {
		t.Errorf("200/s of a server that answers 50: got held %v, %d of %d answers in time; want at most 90 %%", p.Held, got, all)
	}
}

func TestFindMax(t *testing.T) {
	for _, capacity := range []float64{200, 1234, 99_999, 7_654_321} {
		probes := 0
		res, err := load.FindMaxWith(context.Background(), load.SearchOptions{Threshold: "p99 < 50ms", Report: func(load.Probe) { probes++ }},
			func(_ context.Context, o load.Options) (*load.Result, error) { return system(o, capacity), nil })
		if err != nil {
			t.Fatal(err)
		}
		if res.Rate > capacity || res.Rate < capacity/1.05 || !res.Confirmed {
			t.Errorf("capacity %g: got %g, confirmed %v; want within 5 %% below", capacity, res.Rate, res.Confirmed)
		}
		if probes != len(res.Probes) || res.Threshold != "p99<50ms" || res.Ended != "" {
			t.Errorf("capacity %g: got %d probes, %d reported, threshold %q, ended %q", capacity, len(res.Probes), probes, res.Threshold, res.Ended)
		}
		for _, p := range res.Probes {
			if p.Held != (p.Rate <= capacity) || p.Held != (p.Reason == "") {
				t.Errorf("capacity %g: probe %+v", capacity, p)
			}
		}
	}
}

func TestFindMaxEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calls := 0
	tests := []struct {
		name  string
		so    load.SearchOptions
		run   func(o load.Options) (*load.Result, error)
		rate  float64 // found; negative: any above 0
		text  string  // in Ended, a warning or the last probe's reason
		fails bool    // with an error
	}{
		{"nothing holds", load.SearchOptions{From: 100, Step: time.Minute},
			func(o load.Options) (*load.Result, error) { return system(o, 50), nil }, 0, "does not hold at 100/s, the lowest rate tried", false},
		{"all hold", load.SearchOptions{To: 5000},
			func(o load.Options) (*load.Result, error) { return system(o, 1e9), nil }, 5000, "the limit lies above", false},
		{"a lucky probe", load.SearchOptions{From: 200, To: 200},
			func(o load.Options) (*load.Result, error) { calls++; return system(o, float64(300-200*(calls-1))), nil }, 0, "held p99<50ms a second time", false},
		{"rate not reached", load.SearchOptions{From: 1000},
			func(o load.Options) (*load.Result, error) {
				r := system(o, 1e9)
				r.Counts.Status[2] = r.Counts.Status[2] * 97 / 100
				load.AnswersAfter(r, hist.New())
				return r, nil
			}, 0, "the rate was not reached: 970.0/s answered", false},
		{"slow answers", load.SearchOptions{From: 1000, To: 1000},
			func(o load.Options) (*load.Result, error) {
				r := system(o, 1e9)
				r.Elapsed += o.Duration / 10 // until the last has come
				return r, nil
			}, 1000, "", false},
		{"generator bound", load.SearchOptions{From: 1000},
			func(o load.Options) (*load.Result, error) { return halfLate(o), nil }, 0, "the generator was the bottleneck: 500.0/s answered", false},
		{"generator bound from the start", load.SearchOptions{From: 1000},
			func(o load.Options) (*load.Result, error) { return halfLate(o), nil }, 0, "is not known: the generator was the limit", false},
		{"no answers", load.SearchOptions{From: 1000},
			func(o load.Options) (*load.Result, error) { return system(o, 1e9), errors.New("nobody there") }, 0, "probing 1000/s: nobody there", true},
		{"no answers later", load.SearchOptions{From: 1000},
			func(o load.Options) (*load.Result, error) {
				if o.Schedule.RateAt(0) > 1500 {
					return system(o, 1e9), errors.New("all gone")
				}
				return system(o, 1e9), nil
			}, -1, "", false},
		{"run impossible", load.SearchOptions{},
			func(load.Options) (*load.Result, error) { return nil, errors.New("no such thing") }, 0, "probing 200/s: no such thing", true},
		{"interrupted", load.SearchOptions{},
			func(o load.Options) (*load.Result, error) {
				if o.Schedule.RateAt(0) > 1000 {
					cancel()
				}
				return system(o, 1e9), nil
			}, 800, "interrupted", false},
	}
	for _, tt := range tests {
		tt.so.Threshold = "p99<50ms"
		res, err := load.FindMaxWith(ctx, tt.so, func(_ context.Context, o load.Options) (*load.Result, error) { return tt.run(o) })
		if tt.fails {
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: got error %v, want one with %q", tt.name, err, tt.text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		said := res.Ended
		for _, w := range res.Warnings {
			said += "\n" + w.Error()
		}
		if n := len(res.Probes); n > 0 {
			said += "\n" + res.Probes[n-1].Reason
		}
		if res.Rate != tt.rate && !(tt.rate < 0 && res.Rate > 0) || !strings.Contains(said, tt.text) {
			t.Errorf("%s: got rate %g and %q; want %g and %q", tt.name, res.Rate, said, tt.rate, tt.text)
		}
	}
}

func TestFindMaxOptions(t *testing.T) {
	for want, so := range map[string]load.SearchOptions{
		"no comparison":            {},
		`"p99>50ms" does not end`:  {Threshold: "p99>50ms"},
		`"errors>1%" does not end`: {Threshold: "errors>1%"},
		`"rate<1000" does not end`: {Threshold: "rate<1000"},
		`"rate>1000" does not end`: {Threshold: "rate>1000"},
		"negative":                 {Threshold: "p99<1ms", Step: -1},
		"no range":                 {Threshold: "p99<1ms", From: 10, To: 5},
		"above 0":                  {Threshold: "p99<1ms", From: -10},
	} {
		if _, err := load.FindMax(context.Background(), load.Options{}, so); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("search %+v: got error %v, want one with %q", so, err, want)
		}
	}
}

// Each probe measures long enough for the quantile, whatever the rate.
func TestFindMaxDuration(t *testing.T) {
	_, err := load.FindMaxWith(context.Background(), load.SearchOptions{Threshold: "p99.9<50ms", From: 10, Step: time.Second},
		func(_ context.Context, o load.Options) (*load.Result, error) {
			if n := o.Schedule.RateAt(0) * o.Duration.Seconds(); n < 10_000 || o.Duration < time.Second {
				t.Errorf("at %g/s for %v: got %g requests, want 10,000", o.Schedule.RateAt(0), o.Duration, n)
			}
			return system(o, 1e5), nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFindMaxServer(t *testing.T) {
	o, _ := serve(t, 0, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	res, err := load.FindMax(context.Background(), o, load.SearchOptions{Threshold: "p50<10s", From: 100, To: 200, Step: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	// Whether the rate is reached depends on the machine.
	if p := res.Probes[0]; p.Rate != 100 || p.Value == "" || p.Result.Counts.Scheduled != 22 {
		t.Errorf("got probes %+v, want a first one of 22 requests at 100/s", res.Probes)
	}
}
