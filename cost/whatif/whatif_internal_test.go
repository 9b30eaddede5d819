package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// windows makes a pair in which requests cost cpu, and extra for each of the
// nanoseconds taken from them.
func windows(requests uint64, cpu, extra, taken time.Duration) pair {
	n := time.Duration(requests)
	return pair{
		off: probe.Reading{Took: time.Second, Requests: requests, Calls: requests, CPU: n * cpu},
		on:  probe.Reading{Took: time.Second, Requests: requests / 2, Calls: requests / 2, CPU: n / 2 * (cpu + extra), Taken: n / 2 * taken},
	}
}

func TestNewResult(t *testing.T) {
	var pairs []pair
	for i := range 10 {
		drift := time.Duration(i) * time.Microsecond // which pairs take out
		pairs = append(pairs, windows(1000, 50*time.Microsecond+drift, 28*time.Microsecond, 20*time.Microsecond))
	}
	res, err := newResult(append(pairs, windows(10, time.Second, time.Second, time.Second)), leastPairs)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s: got %g, want %g", what, got, want)
		}
	}
	near("effect", res.Effect.Value, 28e3)
	near("effect for each ns", res.PerTaken.Value, 1.4)
	near("change of rate", res.Rate.Value, -0.5)
	near("taken", res.Taken, 20e3)
	near("calls", res.Calls, 1)
	near("CPU as it is", res.Off.CPU, 54.5e3)
	if res.Pairs != 10 || len(res.Warnings) != 1 {
		t.Errorf("got %d pairs and warnings %v, want 10, and one left out", res.Pairs, res.Warnings)
	}
	owner := cost.Owner{Kind: cost.Handler, Name: "mw.Auth"}
	res.addOwnTime(&probe.Measurement{Walls: []cost.Wall{{Owner: owner, Seen: 5, Self: 75e3, P50: 10e3}}}, nil, owner)
	near("saved, by the clock", res.Saved.Value, 14e3)
	near("at least, by the clock's median", res.Saved.Low, 14e3)
	near("at most, by the clock's mean", res.Saved.High, 21e3)
	res.Own.CPU, res.Own.Margin = 20e3, 5e3
	res.addOwnTime(nil, errors.New("as it happens"), owner)
	near("saved, by sampling", res.Saved.Value, 28e3)
	near("at least, by sampling", res.Saved.Low, 21e3)
	near("at most, by sampling", res.Saved.High, 35e3)
	if _, err := newResult(pairs[:leastPairs-1], leastPairs); err == nil {
		t.Error("got no error of too few pairs for an interval")
	}
}

// TestSavedUnknown has nothing told of what removing an owner would save whose own time
// is not known, also where the interval of what it costs is not bounded.
func TestSavedUnknown(t *testing.T) {
	sure := windows(1000, 50*time.Microsecond, 20*time.Microsecond, 20*time.Microsecond)
	res, err := newResult([]pair{sure, sure}, 1)
	if err != nil {
		t.Fatal(err)
	}
	res.addOwnTime(nil, errors.New("timing its calls would take too much"), cost.Owner{})
	if b, err := json.Marshal(res); err != nil || strings.Contains(string(b), "saved_ns") {
		t.Errorf("got JSON %s, %v, want no saved_ns", b, err)
	}
}

func TestAmbiguousError(t *testing.T) {
	two := func(met bool) *AmbiguousError {
		return &AmbiguousError{"mw.Sign", []probe.Watched{
			{Owner: cost.Owner{Name: "mw.Sign", File: "/src/mw/mw.go", Decl: 22}},
			{Owner: cost.Owner{Name: "mw.Sign", File: "/src/mw/mw.go", Decl: 23}, Met: met},
		}}
	}
	for met, want := range map[bool]string{
		true:  "owner mw.Sign is 2 owners: mw.Sign (mw/mw.go:22), mw.Sign (mw/mw.go:23)",
		false: "2 functions have the name mw.Sign, and none was seen to handle a request within 400ms: mw.Sign (mw/mw.go:22), mw.Sign (mw/mw.go:23)",
	} {
		if e := two(met); e.Met() != met || e.Error() != want {
			t.Errorf("met %t: got %t and %q, want %q", met, e.Met(), e, want)
		}
	}
}

func TestCompareLayers(t *testing.T) {
	mw := cost.Frame{Func: "main.main.Spin.func1", File: "/src/shop/mw.go", Decl: 3}
	through := cost.Frame{Func: "net/http.HandlerFunc.ServeHTTP"}
	hello := cost.Frame{Func: "main.hello", File: "/src/shop/main.go", Decl: 9}
	stack := func(ns float64, frames ...cost.Frame) cost.Stack {
		return cost.Stack{Frames: append(frames, through), Count: 100, Value: ns}
	}
	w := cost.Window{Duration: time.Second, Requests: 10}
	off := cost.NewBill([]cost.Stack{stack(1000, mw), stack(500, hello, through, mw)}, nil, w)
	// The handler was not seen this time, so that the middleware looks like one.
	on := cost.NewBill([]cost.Stack{stack(4000, mw)}, nil, w)
	all := compareLayers(off, on)
	if len(all) != 2 {
		t.Fatalf("got %+v, want the middleware once, and the handler", all)
	}
	if l := all[0]; l.Owner != "shop.Spin" || l.Off != 100 || l.Change != 300 || math.Abs(l.Margin-math.Hypot(19.6, 78.4)) > 0.01 {
		t.Errorf("got %+v first", l)
	}
	if l := all[1]; l.Owner != "shop.hello" || l.Change != -50 {
		t.Errorf("got %+v second", l)
	}
}

func TestGuard(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	g := &guard{bound: 10 * time.Millisecond, stop: cancel}
	answers := hist.New()
	second := func(n time.Duration, ns int64) {
		answers.RecordN(ns, 1000)
		g.check(answersOf(load.Snapshot{Elapsed: n * time.Second, Response: answers}))
	}
	second(0, int64(time.Second)) // before it began to look
	second(1, int64(time.Millisecond))
	second(2, int64(9*time.Millisecond))
	if ctx.Err() != nil {
		t.Fatalf("got %v while p99 was within its bound", context.Cause(ctx))
	}
	second(3, int64(12*time.Millisecond))
	var slow *TooSlow
	if !errors.As(context.Cause(ctx), &slow) || slow.P99 < 11*time.Millisecond || slow.P99 > 13*time.Millisecond {
		t.Errorf("got %v, want the p99 of the last second", context.Cause(ctx))
	}
}

// A service that answers nothing any more is too slow, however few its answers.
func TestGuardStalled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	g := &guard{bound: 1500 * time.Millisecond, stop: cancel}
	answers := hist.New()
	look := func(at time.Duration, all uint64) {
		answers.RecordN(int64(time.Millisecond), all-answers.Count())
		g.check(answersOf(load.Snapshot{Elapsed: at, Response: answers, Flight: 8, Counts: load.Counts{Status: [6]uint64{2: all}}}))
	}
	look(0, 1)
	look(time.Second, 1000)
	look(2*time.Second, 1003)
	if ctx.Err() != nil {
		t.Fatalf("got %v after a second, want nothing yet", context.Cause(ctx))
	}
	look(3*time.Second, 1003)
	var slow *TooSlow
	if !errors.As(context.Cause(ctx), &slow) || slow.Stuck != 5 || slow.Over != 2*time.Second {
		t.Errorf("got %v, want 5 requests without an answer for 2 s", context.Cause(ctx))
	}
}

// TestGuardUnbidden has a bound found that nobody gave, by the first second.
func TestGuardUnbidden(t *testing.T) {
	tests := []struct {
		name               string
		first, later, slow time.Duration
	}{
		{"quick service", time.Millisecond, 95 * time.Millisecond, 110 * time.Millisecond},
		{"slow service", 50 * time.Millisecond, 450 * time.Millisecond, 550 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			g := &guard{stop: cancel}
			answers := hist.New()
			second := func(n time.Duration, each time.Duration, count uint64) {
				answers.RecordN(int64(each), count)
				g.check(answersOf(load.Snapshot{Elapsed: n * time.Second, Response: answers}))
			}
			second(0, tt.first, 1000)
			second(1, tt.first, 1000)
			second(2, tt.later, 1000)
			second(3, tt.slow, 60) // of too few answers nothing is said yet
			if ctx.Err() != nil {
				t.Fatalf("got %v, want nothing yet", context.Cause(ctx))
			}
			second(4, tt.slow, 60)
			var slow *TooSlow
			if want := max(leastBound, boundFactor*tt.first); !errors.As(context.Cause(ctx), &slow) || math.Abs(float64(slow.Bound-want)) > 0.05*float64(want) {
				t.Errorf("got %v, want a bound of about %s exceeded", context.Cause(ctx), want)
			}
		})
	}
}

// TestAnnounce says what is going to be done, what that takes, and who watches.
func TestAnnounce(t *testing.T) {
	owner := cost.Owner{Name: "mw.Auth", File: "/src/mw/mw.go", Decl: 7}
	own := &probe.Measurement{Attached: 2 * time.Second, Walls: []cost.Wall{
		{Owner: cost.Owner{Name: "mw.Log"}, Calls: 1e6}, {Owner: owner, Calls: 20_000},
	}}
	const line = "slowing mw.Auth (mw/mw.go:7) of process 4711 down by 20µs a call, half of the next 30s"
	tests := []struct {
		by   *sentry
		own  *probe.Measurement
		want string
	}{
		{&sentry{}, nil, line},
		{&sentry{}, own, line + "; at 10,000 calls a second this takes 20.0 % of a CPU"},
		{&sentry{missing: cost.ErrNotSupported}, nil, line + "|response times are not watched meanwhile (not supported here): with a load of its own, tare stops when they exceed a bound"},
	}
	for _, tt := range tests {
		var lines []string
		r := &run{sentry: tt.by, Options: Options{PID: 4711, Slow: 20 * time.Microsecond, For: 30 * time.Second,
			Progress: func(line string) { lines = append(lines, line) }}}
		if err := r.announce(owner, tt.own); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(lines, "|"); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.by, got, tt.want)
		}
	}
}
