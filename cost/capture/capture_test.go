package capture

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/load"
)

// TestAllocsOfAnotherTime warns where a CPU profile stands beside allocations that are
// of all since the program began, or of another time.
func TestAllocsOfAnotherTime(t *testing.T) {
	dir := t.TempDir()
	file := func(kind pprof.Kind, d time.Duration) string {
		name := filepath.Join(dir, fmt.Sprintf("%d-%d.pb.gz", kind, d))
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p := pprof.New(kind, d, []cost.Stack{{Frames: []cost.Frame{{Func: "main.work"}}, Count: 100, Value: 1e9}})
		if err := p.Write(f); err != nil {
			t.Fatal(err)
		}
		return name
	}
	cpu := file(pprof.CPU, 30*time.Second)
	for _, tt := range []struct {
		files []string
		want  string // "" = no warning
	}{
		{[]string{cpu, file(pprof.Allocs, 0)}, "of all since the program began"},
		{[]string{file(pprof.Allocs, 5*time.Second), cpu}, "of 5 s and the CPU profile of 30,"},
		{[]string{cpu, file(pprof.Allocs, 31*time.Second)}, ""},
		{[]string{file(pprof.Allocs, 0)}, ""},
		{[]string{cpu}, ""},
	} {
		c, err := Read(0, tt.files...)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.Warnings); len(c.Warnings) > 1 || (tt.want == "") != (len(c.Warnings) == 0) || !strings.Contains(got, tt.want) {
			t.Errorf("%q: warnings %s, want %q", tt.files, got, tt.want)
		}
	}
}

// TestTracedRequests has a service answer half as much while it is traced: each part has
// the requests of its own time.
func TestTracedRequests(t *testing.T) {
	begun := time.Now()
	under := &Load{cancel: func() {}, done: make(chan error, 1), res: &load.Result{Started: begun, Elapsed: 2 * time.Second}}
	for at := time.Duration(0); at < 2*time.Second; at += slice {
		n := uint64(100)
		if at >= time.Second {
			n = 50
		}
		under.res.Series = append(under.res.Series, load.Slice{At: at, Answered: n})
		under.res.Counts.Scheduled += n
		under.res.Counts.Status[2] += n
	}
	c := &Capture{Window: cost.Window{Duration: time.Second}, Waits: []cost.Wait{}, Traced: cost.Window{Duration: time.Second}}
	c.countRequests(under, begun, begun.Add(time.Second))
	if c.Window.Requests != 2000 || math.Round(c.Traced.Requests) != 1000 {
		t.Errorf("got %g requests of the profile and %g of the trace, want 2000 and 1000", c.Window.Requests, c.Traced.Requests)
	}
}

// TestRequestsOfOnePart has a service answer only while it is traced: CPU and waits are
// told a request all the same.
func TestRequestsOfOnePart(t *testing.T) {
	begun := time.Now()
	under := &Load{cancel: func() {}, done: make(chan error, 1), res: &load.Result{
		Started: begun, Elapsed: 2 * time.Second, Series: []load.Slice{{At: 1500 * time.Millisecond, Answered: 8}},
		Counts: load.Counts{Scheduled: 8, Status: [6]uint64{2: 8}},
	}}
	c := &Capture{Window: cost.Window{Duration: time.Second}, Waits: []cost.Wait{}, Traced: cost.Window{Duration: time.Second}}
	c.countRequests(under, begun, begun.Add(time.Second))
	if c.Window.Requests != 4 || c.Traced.Requests != 4 {
		t.Errorf("got %g requests of the profile and %g of the trace, want 4, half of all, and as many", c.Window.Requests, c.Traced.Requests)
	}
}

// TestCallsInterrupted has it said, for text and JSON alike, that marks are missing or
// of a shorter time because somebody interrupted.
func TestCallsInterrupted(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	failed := errors.New("no probes here")
	m := &probe.Measurement{Attached: 1500 * time.Millisecond, Requests: 30}
	for _, tc := range []struct {
		name     string
		ctx      context.Context
		m        *probe.Measurement
		err      error
		warning  string
		requests float64
	}{
		{"before", interrupted, nil, context.Canceled, "no counts and times of calls (--marks)", 0},
		{"amid", interrupted, m, nil, "calls were timed for 1.50 s", 200},
		{"not", t.Context(), m, nil, "requests were counted after the sampling, while calls were timed", 200},
		{"not to be had", t.Context(), nil, failed, "", 0},
	} {
		c := &Capture{Window: cost.Window{Duration: 10 * time.Second}}
		c.takeCalls(tc.ctx, tc.m, tc.err)
		if got := strings.Join(c.Bill().Warnings, "; "); (got == "") != (tc.warning == "") || !strings.Contains(got, tc.warning) {
			t.Errorf("%s: warnings %q, want %q", tc.name, got, tc.warning)
		}
		if c.Calls != tc.m || c.Window.Requests != tc.requests || (c.CallsErr == failed) != (tc.err == failed) {
			t.Errorf("%s: got %+v, %g requests, %v", tc.name, c.Calls, c.Window.Requests, c.CallsErr)
		}
	}
}

func TestAddCalls(t *testing.T) {
	owner := cost.Owner{Kind: cost.Handler, Name: "mw.Auth", File: "/src/mw/auth.go", Decl: 7}
	wall := cost.Wall{Owner: owner, Calls: 100, Seen: 100, Self: 2e6, Total: 5e6, P50: 19e3, P99: 40e3}
	tests := []struct {
		name     string
		requests float64 // counted while it was watched
		bill     cost.Window
		want     float64 // calls
		per      string
	}{
		{"counted", 50, cost.Window{Duration: 10 * time.Second, Requests: 900}, 2, "request"},
		{"counted by the load alone", 0, cost.Window{Duration: 10 * time.Second, Requests: 200}, 5, "request"},
		{"not counted", 0, cost.Window{Duration: 10 * time.Second}, 100, "second"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := cost.NewBill(nil, nil, tt.bill)
			idle := cost.NewBill(nil, nil, tt.bill)
			if addCalls(idle, &probe.Measurement{Walls: []cost.Wall{{Owner: owner}}, Attached: time.Second}); len(idle.Warnings) > 0 {
				t.Errorf("of a service without requests and calls: got warnings %q", idle.Warnings)
			}
			addCalls(b, &probe.Measurement{Walls: []cost.Wall{wall}, Attached: time.Second, Requests: tt.requests, Warnings: []error{errors.New("as it happens")}})
			var told []string
			if tt.requests == 0 && tt.bill.Requests > 0 {
				told = append(told, "where requests begin is not known")
			}
			told = append(told, "as it happens")
			begins := func(got, want string) bool { return strings.HasPrefix(got, want) }
			if len(b.Items) != 1 || !slices.EqualFunc(b.Warnings, told, begins) {
				t.Fatalf("got %+v, want one owner and warnings that begin with %q", b, told)
			}
			if got := b.Items[0].Wall; math.Abs(got.Calls-tt.want) > 1e-9 || b.Per != tt.per {
				t.Errorf("got %g calls a %s, want %g a %s", got.Calls, b.Per, tt.want, tt.per)
			}
		})
	}
}

// What it will cost the service is said before it is paid.
func TestPrice(t *testing.T) {
	s, err := Service{URL: "localhost:6060"}.Find(t.Context(), Cheapest)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		o    Options
		t    *Target
		want string
	}{
		{Options{}, s, "6 to 19 % of the CPU it uses"},
		{Options{Waits: 5 * time.Second}, s, "6 to 19 % of the CPU it uses, then up to 12 % for 5s"},
		{Options{Hz: 999}, &Target{PID: 1}, "3.0 % of the CPU it uses"},
	} {
		if got := tt.o.Price(tt.t); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestEnded tells a service that ended meanwhile from one with other caveats.
func TestEnded(t *testing.T) {
	ended := Capture{Warnings: []error{errors.New("late"), fmt.Errorf("%w: what was seen until then is shown", bpf.ErrEnded)}}
	if other := (Capture{Warnings: ended.Warnings[:1]}); !ended.Ended() || other.Ended() {
		t.Errorf("of one that ended: %t; of one that did not: %t", ended.Ended(), other.Ended())
	}
}
