package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
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

func TestNewWhatif(t *testing.T) {
	var pairs []pair
	for i := range 10 {
		drift := time.Duration(i) * time.Microsecond // which pairs take out
		pairs = append(pairs, windows(1000, 50*time.Microsecond+drift, 28*time.Microsecond, 20*time.Microsecond))
	}
	res, err := newWhatif(append(pairs, windows(10, time.Second, time.Second, time.Second)), leastPairs)
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
	res.own(&probe.Measurement{Walls: []cost.Wall{{Owner: owner, Seen: 5, Self: 75e3, P50: 10e3}}}, nil, owner)
	near("saved, by the clock", res.Saved.Value, 14e3)
	near("at least, by the clock's median", res.Saved.Low, 14e3)
	near("at most, by the clock's mean", res.Saved.High, 21e3)
	res.Own.CPU, res.Own.Margin = 20e3, 5e3
	res.own(nil, errors.New("as it happens"), owner)
	near("saved, by sampling", res.Saved.Value, 28e3)
	near("at least, by sampling", res.Saved.Low, 21e3)
	near("at most, by sampling", res.Saved.High, 35e3)
	if _, err := newWhatif(pairs[:leastPairs-1], leastPairs); err == nil {
		t.Error("got no error of too few pairs for an interval")
	}
}

// TestWhatifUndecided has nothing promised that is not told apart from chance,
// of measured pairs and of too few for an interval.
func TestWhatifUndecided(t *testing.T) {
	var pairs []pair
	for i := range 8 {
		extra := 5 * time.Microsecond
		if i%2 == 1 {
			extra = -4 * time.Microsecond
		}
		pairs = append(pairs, windows(1000, 50*time.Microsecond, extra, 20*time.Microsecond))
	}
	sure := windows(1000, 50*time.Microsecond, 20*time.Microsecond, 20*time.Microsecond)
	tests := []struct {
		name  string
		pairs []pair
		least int
		want  string
	}{
		{"by chance", pairs, leastPairs, "not told apart from chance"},
		{"interrupted", []pair{sure, sure}, 1, "interval not bounded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := newWhatif(tt.pairs, tt.least)
			if err != nil {
				t.Fatal(err)
			}
			res.Own.CPU, res.Own.Margin = 20e3, 1e3
			res.own(&probe.Measurement{}, nil, cost.Owner{})
			var out bytes.Buffer
			if err := res.text(&cli.Terminal{Out: &out}); err != nil {
				t.Fatal(err)
			}
			if text := out.String(); res.Saved != nil || strings.Contains(text, "without it") ||
				!strings.Contains(text, tt.want) || !strings.Contains(text, "What removing it would save cannot be told.") {
				t.Errorf("got %+v saved, and\n%s\nwant nothing promised, and %q", res.Saved, text, tt.want)
			}
			var read whatif
			if b, err := json.Marshal(res); err != nil || json.Unmarshal(b, &read) != nil || read.Effect.Value != res.Effect.Value {
				t.Errorf("got JSON %s, %v", b, err)
			}
		})
	}
}

// TestWhatifUnknown has nothing told of what removing an owner would save whose own time
// is not known, also where the interval of what it costs is not bounded.
func TestWhatifUnknown(t *testing.T) {
	sure := windows(1000, 50*time.Microsecond, 20*time.Microsecond, 20*time.Microsecond)
	res, err := newWhatif([]pair{sure, sure}, 1)
	if err != nil {
		t.Fatal(err)
	}
	res.own(nil, errors.New("timing its calls would take too much"), cost.Owner{})
	if b, err := json.Marshal(res); err != nil || strings.Contains(string(b), "saved_ns") {
		t.Errorf("got JSON %s, %v, want no saved_ns", b, err)
	}
}

func TestAmbiguous(t *testing.T) {
	two := func(met bool) []probe.Watched {
		return []probe.Watched{
			{Owner: cost.Owner{Name: "mw.Sign", File: "/src/mw/mw.go", Decl: 22}},
			{Owner: cost.Owner{Name: "mw.Sign", File: "/src/mw/mw.go", Decl: 23}, Met: met},
		}
	}
	tests := []struct {
		met    bool
		status int
		hint   string
	}{
		{true, cli.ExitUsage, "name one by file.go:line"},
		{false, cli.ExitFailed, "load the service"},
	}
	for _, tt := range tests {
		var f *cli.Failure
		err := ambiguous("mw.Sign", two(tt.met))
		if !errors.As(err, &f) || f.Status != tt.status || !strings.HasPrefix(f.Hint, tt.hint) {
			t.Errorf("met %t: got %+v, want status %d and hint %q", tt.met, f, tt.status, tt.hint)
		}
		if want := "mw.Sign (mw/mw.go:22), mw.Sign (mw/mw.go:23)"; !strings.HasSuffix(err.Error(), want) {
			t.Errorf("met %t: got %q, want it to end with %q", tt.met, err, want)
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
	var out bytes.Buffer
	printLayers(&out, all)
	if text := out.String(); !strings.Contains(text, "+300 ns") || !strings.Contains(text, "shop.Spin") {
		t.Errorf("got %s", text)
	}
}

// What nobody sampled has no margin, which is not a margin of nothing.
func TestPrintLayersWithoutMargin(t *testing.T) {
	var out bytes.Buffer
	printLayers(&out, []layer{{Owner: "[kernel] not sampled", Change: 19400}})
	if text := out.String(); strings.Contains(text, "± 0 ns") || !strings.Contains(text, "+19.4 µs ± –") {
		t.Errorf("got %s", text)
	}
}

// Header fields that were asked for are sent with every request of the load.
func TestWhatifHeader(t *testing.T) {
	var sent, lacked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1); r.Header.Get("Authorization") != "Bearer a:b" {
			lacked.Add(1)
		}
	}))
	defer s.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	c := &whatifCmd{Load: s.URL, Conns: 1, For: time.Second, Header: []string{"Authorization: Bearer a:b"}}
	ended, err := c.drive(ctx, &guard{stop: stop}) // returns after the warm-up
	if err != nil {
		t.Fatal(err)
	}
	stop(nil)
	if end := <-ended; end.err != nil {
		t.Log(end.err) // ended before anything was measured
	}
	if sent.Load() < 2 || lacked.Load() > 0 {
		t.Errorf("of %d requests %d lacked the field, want none", sent.Load(), lacked.Load())
	}
}

// A load that is only ever refused says nothing about the service's own work.
func TestWhatifRefused(t *testing.T) {
	var refused atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refused.Add(1)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	defer s.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	c := &whatifCmd{Load: s.URL, Conns: 1, For: time.Second}
	ended, err := c.drive(ctx, &guard{stop: stop})
	if err != nil {
		t.Fatal(err)
	}
	for before := refused.Load(); refused.Load() < before+5; { // in the measured part
		time.Sleep(time.Millisecond)
	}
	stop(nil)
	if got := cli.Texts((<-ended).warnings); len(got) != 1 || !strings.Contains(got[0], "status 4xx or 5xx") {
		t.Errorf("got warnings %q, want that the answers were errors", got)
	}
}

func TestGuard(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	g := &guard{bound: 10 * time.Millisecond, stop: cancel}
	answers := hist.New()
	second := func(n time.Duration, ns int64) {
		answers.RecordN(ns, 1000)
		g.look(ofLoad(load.Snapshot{Elapsed: n * time.Second, Response: answers}))
	}
	second(0, int64(time.Second)) // before it began to look
	second(1, int64(time.Millisecond))
	second(2, int64(9*time.Millisecond))
	if ctx.Err() != nil {
		t.Fatalf("got %v while p99 was within its bound", context.Cause(ctx))
	}
	second(3, int64(12*time.Millisecond))
	var slow *tooSlow
	if !errors.As(context.Cause(ctx), &slow) || slow.p99 < 11*time.Millisecond || slow.p99 > 13*time.Millisecond {
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
		g.look(ofLoad(load.Snapshot{Elapsed: at, Response: answers, Flight: 8, Counts: load.Counts{Status: [6]uint64{2: all}}}))
	}
	look(0, 1)
	look(time.Second, 1000)
	look(2*time.Second, 1003)
	if ctx.Err() != nil {
		t.Fatalf("got %v after a second, want nothing yet", context.Cause(ctx))
	}
	look(3*time.Second, 1003)
	var slow *tooSlow
	if !errors.As(context.Cause(ctx), &slow) || slow.stuck != 5 || slow.over != 2*time.Second {
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
				g.look(ofLoad(load.Snapshot{Elapsed: n * time.Second, Response: answers}))
			}
			second(0, tt.first, 1000)
			second(1, tt.first, 1000)
			second(2, tt.later, 1000)
			second(3, tt.slow, 60) // of too few answers nothing is said yet
			if ctx.Err() != nil {
				t.Fatalf("got %v, want nothing yet", context.Cause(ctx))
			}
			second(4, tt.slow, 60)
			var slow *tooSlow
			if want := max(leastBound, worse*tt.first); !errors.As(context.Cause(ctx), &slow) || math.Abs(float64(slow.bound-want)) > 0.05*float64(want) {
				t.Errorf("got %v, want a bound of about %s exceeded", context.Cause(ctx), want)
			}
		})
	}
}

// TestWhatIfClock keeps the timing beforehand within its budget.
func TestWhatIfClock(t *testing.T) {
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
		c := &whatifCmd{Most: cli.Percent(tt.most)}
		o, err := c.clock(&probe.Forecast{Share: tt.forecast})
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

// TestWhatIfAnnounce says what is going to be done, what that takes, and who watches.
func TestWhatIfAnnounce(t *testing.T) {
	owner := cost.Owner{Name: "mw.Auth", File: "/src/mw/mw.go", Decl: 7}
	own := &probe.Measurement{Attached: 2 * time.Second, Walls: []cost.Wall{
		{Owner: cost.Owner{Name: "mw.Log"}, Calls: 1e6}, {Owner: owner, Calls: 20_000},
	}}
	const line = "slowing mw.Auth (mw/mw.go:7) of process 4711 down by 20µs a call, half of the\nnext 30s"
	tests := []struct {
		by   *sentry
		own  *probe.Measurement
		want string
	}{
		{&sentry{}, nil, line + "\n"},
		{&sentry{}, own, line + "; at the 10,000 calls a second there are, that takes 20.0 % of a CPU\nthen\n"},
		{&sentry{nobody: cost.ErrNotSupported}, nil, line + "\nnobody watches its response times meanwhile (not supported here): with --load\nURL it is stopped when they get out of bounds\n"},
	}
	for _, tt := range tests {
		watched, err := tt.by.says(0)
		if err != nil {
			t.Fatal(err)
		}
		c := &whatifCmd{PID: 4711, Slow: 20 * time.Microsecond, For: 30 * time.Second}
		var errs bytes.Buffer
		c.announce(&cli.Terminal{Err: &errs, Columns: 80}, owner, tt.own, watched)
		if got := errs.String(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.by, got, tt.want)
		}
	}
}

// TestRequestsSeen takes calls for requests only where there were calls and no request.
func TestRequestsSeen(t *testing.T) {
	called, idle := []cost.Wall{{Calls: 4200}}, []cost.Wall{{}}
	for _, tt := range []struct {
		name string
		own  *probe.Measurement
		want bool
	}{
		{"not timed", nil, true},
		{"counted", &probe.Measurement{Walls: called, Requests: 4200}, true},
		{"no load yet", &probe.Measurement{Walls: idle}, true},
		{"an engine that is not known", &probe.Measurement{Walls: called}, false},
	} {
		if got := requestsSeen(tt.own); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
