//go:build linux && amd64

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/whatif"
	"github.com/tarehq/tare/internal/injected"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// TestWhatIf runs the command against a service under load.
func TestWhatIf(t *testing.T) {
	p := injected.Start(t, injected.Build(t), "-alloc", "0")
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"whatif", "--pid", strconv.Itoa(p.PID), "--owner", "layers.Spin", "--slow", "30us",
		"--for", "6s", "--layers", "2s", "--load", p.URL + "/", "-c", "4", "--abort-p99", "1m", "--max-overhead", "100%", "--json"}, &cli.Terminal{Out: &out, Err: &errs, Piped: true})
	if strings.Contains(errs.String(), cost.ErrNotSupported.Error()) {
		t.Skip(errs.String())
	}
	if status != 0 {
		t.Fatalf("got status %d: %s", status, errs.String())
	}
	var res whatif.Result
	if err := json.Unmarshal(out.Bytes(), &res); err != nil {
		t.Fatal(err)
	}
	if res.Owner != "layers.Spin" || res.Pairs < 6 || math.Abs(res.Calls-1) > 0.1 {
		t.Errorf("got %s, %d pairs, %g calls a request, want layers.Spin, called once a request", res.Owner, res.Pairs, res.Calls)
	}
	// What else runs here makes it longer, never shorter.
	if res.Taken < 29e3*res.Calls || res.Own.P50 < 15e3 || res.Own.CPU <= 0 || len(res.Layers) < 2 {
		t.Errorf("got %g ns taken, own time %+v, %d layers", res.Taken, res.Own, len(res.Layers))
	}
	said := unbroken(errs.String())
	for _, want := range []string{"timing calls of 1 owner for 2s: a hit costs ", " a second this takes "} {
		if !strings.Contains(said, want) {
			t.Errorf("got %q, want %q among it; warnings: %q", errs.String(), want, res.Warnings)
		}
	}
}

// TestWhatIfBudget leaves out what would cost more than it may, and says so.
func TestWhatIfBudget(t *testing.T) {
	t.Parallel() // it judges no time
	p := injected.Start(t, injected.Build(t), "-alloc", "0")
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"whatif", "--pid", strconv.Itoa(p.PID), "--owner", "layers.Spin", "--for", "2s", "--window", "100ms",
		"--layers", "0", "--load", p.URL + "/", "-c", "4", "--abort-p99", "1m", "--max-overhead", "0.001%", "--json"}, &cli.Terminal{Out: &out, Err: &errs, Piped: true})
	if strings.Contains(errs.String(), cost.ErrNotSupported.Error()) {
		t.Skip(errs.String())
	}
	var res whatif.Result
	if err := json.Unmarshal(out.Bytes(), &res); err != nil || status != 0 {
		t.Fatalf("got status %d and %v: %s", status, err, errs.String())
	}
	told := slices.ContainsFunc(res.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "its own time by the clock is not known: ") && strings.HasSuffix(w, "more than 0.0 %")
	})
	if !told || res.Own.P50 != 0 || strings.Contains(errs.String(), "timing calls of") {
		t.Errorf("got own time %+v, warnings %q and %q, want no time by the clock, and to be told", res.Own, res.Warnings, errs.String())
	}
}

// TestWhatIfAborted lets response times get out of bounds while an owner is slowed
// down: that ends it, and takes the probe away. Where it ends without that, or before a
// pair of windows is over, the machine is too busy for these times, and has longer ones.
func TestWhatIfAborted(t *testing.T) {
	p := injected.Start(t, injected.Build(t), "-alloc", "0")
	before := p.Code(t)
	for bound := 1500 * time.Millisecond; ; bound *= 2 {
		a := stalled(t, p, bound)
		if (!a.stalled || a.out == "") && bound < 10*time.Second {
			continue
		}
		if a.status != cli.ExitThreshold || !strings.Contains(a.errs, "stopped, and the probe removed: ") {
			t.Fatalf("got status %d, %q and %q, want %d, and to be told", a.status, a.errs, a.out, cli.ExitThreshold)
		}
		if !strings.Contains(a.out, "the windows until then are shown") {
			t.Errorf("got %q, want the windows until then", a.out)
		}
		if a.during == nil || bytes.Equal(before, a.during) {
			t.Error("its code is as before while it is slowed down: there was no probe")
		}
		if !bytes.Equal(before, p.Code(t)) {
			t.Error("its code is not as it was before: a probe is left")
		}
		return
	}
}

// abortion is what became of slowing a service down whose front stalls meanwhile.
type abortion struct {
	stalled   bool // before it ended
	status    int
	out, errs string
	during    []byte // its code while it is slowed down
}

// stalled has tare whatif slow a service down behind a front that stalls after some pairs
// of windows, for twice as long as response times may be.
func stalled(t *testing.T, p *injected.Process, bound time.Duration) abortion {
	t.Helper()
	const conns = 128
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
	defer client.CloseIdleConnections()
	var stalling atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if res, err := client.Get(p.URL + "/"); err == nil {
			io.Copy(w, res.Body)
			res.Body.Close()
		}
		if stalling.Load() {
			time.Sleep(2 * bound)
		}
	}))
	defer front.Close()
	var a abortion
	errs := onWrite{text: "slowing layers.Spin", do: func() {
		a.during = p.Code(t)
		time.AfterFunc(bound*4/3, func() { stalling.Store(true) })
	}}
	var out bytes.Buffer
	a.status = run(t.Context(), []string{"whatif", "--pid", strconv.Itoa(p.PID), "--owner", "layers.Spin", "--slow", "10us", "--for", "2m",
		"--window", "200ms", "--load", front.URL, "-c", strconv.Itoa(conns), "--abort-p99", bound.String()}, &cli.Terminal{Out: &out, Err: &errs, Piped: true})
	a.stalled, a.out, a.errs = stalling.Load(), out.String(), errs.String()
	if strings.Contains(a.errs, cost.ErrNotSupported.Error()) {
		t.Skipf("calls cannot be slowed down here: %s", a.errs)
	}
	return a
}

// TestWhatIfAbortedEarly has any response time be out of bounds.
func TestWhatIfAbortedEarly(t *testing.T) {
	p := injected.Start(t, injected.Build(t), "-alloc", "0")
	before := p.Code(t)
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"whatif", "--pid", strconv.Itoa(p.PID), "--owner", "layers.Spin", "--for", "2m",
		"--load", p.URL + "/", "-c", "4", "--abort-p99", "1us"}, &cli.Terminal{Out: &out, Err: &errs, Piped: true})
	if strings.Contains(errs.String(), cost.ErrNotSupported.Error()) {
		t.Skip(errs.String())
	}
	if status != cli.ExitThreshold || !strings.Contains(errs.String(), ", more than 1.00 µs") {
		t.Errorf("got status %d and %q, want %d, and to be told", status, errs.String(), cli.ExitThreshold)
	}
	if !bytes.Equal(before, p.Code(t)) {
		t.Error("its code is not as it was before: a probe is left")
	}
}

// onWrite does something once something is written.
type onWrite struct {
	bytes.Buffer
	text string
	do   func()
}

func (w *onWrite) Write(b []byte) (int, error) {
	if w.do != nil && bytes.Contains(b, []byte(w.text)) {
		w.do()
		w.do = nil
	}
	return w.Buffer.Write(b)
}

// TestWhatIfOwnLoad slows a service down that somebody else loads: its own answers
// are timed, and that ends it when they get out of bounds, and only then.
func TestWhatIfOwnLoad(t *testing.T) {
	path := injected.Build(t)
	tests := []struct {
		name   string
		rate   float64 // requests a second
		slow   string
		args   []string
		status int
		told   []string
	}{
		{"within bounds", 400, "20us", []string{"--for", "3s", "--window", "200ms", "--abort-p99", "1m"}, 0,
			[]string{"timing its answers, ", ": tare stops when the p99 of a second is above 1m0s\n"}},
		// A thousand calls a second are all that there is time for then: the others queue.
		{"slowed down too much", 1900, "1ms", []string{"--for", "1m", "--window", "2s"}, cli.ExitThreshold,
			[]string{"above ten times that of the first second, at least 100ms tare: stopped, and the probe removed: the p99 of the last second is "}},
		{"any is too much", 400, "20us", []string{"--for", "2m", "--abort-p99", "1us"}, cli.ExitThreshold,
			[]string{"stopped, and the probe removed: the p99 of the last second is ", ", more than 1.00 µs\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"--slow", tt.slow}, tt.args...)
			status, errs := ownLoad(t, path, tt.rate, args)
			for tries := 1; tt.name == "slowed down too much" && disturbed(t, status, errs); tries++ {
				if tries == 3 {
					t.Skipf("too disturbed to tell, each of %d times; got status %d and %q", tries, status, errs)
				}
				status, errs = ownLoad(t, path, tt.rate, args)
			}
			if status != tt.status {
				t.Errorf("got status %d, want %d", status, tt.status)
			}
			for _, told := range tt.told {
				if !strings.Contains(errs, told) {
					t.Errorf("got %q, want %q among it", errs, told)
				}
			}
		})
	}
}

// ownLoad has tare whatif slow down a service that others load, and returns its status
// and what it says. No probe may be left.
func ownLoad(t *testing.T, path string, rate float64, args []string) (status int, said string) {
	t.Helper()
	p := injected.Start(t, path, "-alloc", "0")
	defer p.Stop()
	before := p.Code(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := load.Run(ctx, load.Options{Targets: []load.Target{{URL: p.URL}}, Schedule: pace.Constant(rate),
			Connections: 1000, Duration: 3 * time.Minute})
		over <- err
	}()
	var out, errs bytes.Buffer
	status = run(ctx, append([]string{"whatif", "--pid", strconv.Itoa(p.PID), "--owner", "layers.Spin", "--layers", "0"}, args...),
		&cli.Terminal{Out: &out, Err: &errs, Piped: true})
	cancel()
	if err := <-over; err != nil {
		t.Errorf("loading: %v", err)
	}
	if strings.Contains(errs.String(), cost.ErrNotSupported.Error()) {
		t.Skip(errs.String())
	}
	if !bytes.Equal(before, p.Code(t)) {
		t.Error("its code is not as it was before: a probe is left")
	}
	return status, unbroken(errs.String())
}

// unbroken is what was said, on one line: lines are broken to fit.
func unbroken(said string) string { return strings.Join(strings.Fields(said), " ") + "\n" }

// disturbed tells from what tare whatif says whether a service was kept from answering
// in time by others than the probe: its p99 got out of bounds before it was slowed down;
// or slowing it down could not get it there, since it was 100 ms before. A thousand
// connections to a server that answers a thousand requests a second wait for a second
// at most, which is not more than ten times that.
func disturbed(t *testing.T, status int, said string) bool {
	t.Helper()
	_, watched, slowed := strings.Cut(said, "slowing layers.Spin")
	if !slowed {
		return true
	}
	_, p99, _ := strings.Cut(watched, " with a p99 of ")
	p99, _, _ = strings.Cut(p99, ": ")
	before, err := time.ParseDuration(strings.ReplaceAll(p99, " ", ""))
	if err != nil {
		t.Fatalf("got %q, want the p99 in it: %v", said, err)
	}
	return status == 0 && before >= 100*time.Millisecond
}

// TestWhatIfInterrupted keeps the pairs of windows that there are.
func TestWhatIfInterrupted(t *testing.T) {
	t.Parallel() // it judges no time
	p := injected.Start(t, injected.Build(t), "-alloc", "0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs := onWrite{text: "slowing layers.Spin", do: func() { time.AfterFunc(4*time.Second, cancel) }}
	var out bytes.Buffer
	status := run(ctx, []string{"whatif", "--pid", strconv.Itoa(p.PID), "--owner", "layers.Spin", "--slow", "30us",
		"--for", "60s", "--window", "200ms", "--load", p.URL + "/", "-c", "4", "--abort-p99", "1m", "--json"}, &cli.Terminal{Out: &out, Err: &errs, Piped: true})
	if strings.Contains(errs.String(), cost.ErrNotSupported.Error()) {
		t.Skip(errs.String())
	}
	var res whatif.Result
	if err := json.Unmarshal(out.Bytes(), &res); err != nil || status != cli.ExitInterrupted {
		t.Fatalf("got status %d and %v, want %d and what there is: %s", status, err, cli.ExitInterrupted, errs.String())
	}
	if res.Pairs < 1 || res.Pairs > 30 || !slices.Contains(res.Warnings, "interrupted: the windows until then are shown") {
		t.Errorf("got %d pairs and warnings %q, want some, and to be told", res.Pairs, res.Warnings)
	}
}

// TestWhatIfEnded keeps the pairs of windows that there are when the process
// ends, and says that it did.
func TestWhatIfEnded(t *testing.T) {
	t.Parallel() // it judges no time
	p := injected.Start(t, injected.Build(t), "-alloc", "0")
	gone := make(chan struct{})
	errs := onWrite{text: "slowing layers.Spin", do: func() {
		time.AfterFunc(4*time.Second, func() { defer close(gone); p.Stop() })
	}}
	var out bytes.Buffer
	status := run(t.Context(), []string{"whatif", "--pid", strconv.Itoa(p.PID), "--owner", "layers.Spin", "--slow", "30us",
		"--for", "60s", "--window", "200ms", "--load", p.URL + "/", "-c", "4", "--abort-p99", "1m", "--json"}, &cli.Terminal{Out: &out, Err: &errs, Piped: true})
	if strings.Contains(errs.String(), cost.ErrNotSupported.Error()) {
		t.Skip(errs.String())
	}
	<-gone
	var res whatif.Result
	if err := json.Unmarshal(out.Bytes(), &res); err != nil || status != cli.ExitEnded {
		t.Fatalf("got status %d and %v, want %d and what there is: %s", status, err, cli.ExitEnded, errs.String())
	}
	told := slices.ContainsFunc(res.Warnings, func(w string) bool {
		return strings.Contains(w, "has ended") && strings.HasSuffix(w, ": the windows until then are shown")
	})
	if res.Pairs < 1 || res.Pairs > 30 || !told || !strings.Contains(errs.String(), "has ended") {
		t.Errorf("got %d pairs, warnings %q and %q, want some, and to be told", res.Pairs, res.Warnings, errs.String())
	}
}
