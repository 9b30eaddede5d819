//go:build linux && amd64

package probe_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/internal/pclntab"
)

// TestWatch holds counts and times against what the target measured of itself,
// for builds that leave out what other tools need.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
	}{
		{"plain", nil},
		{"stripped", []string{"-ldflags=-s -w"}},
		{"stripped, position-independent", []string{"-ldflags=-s -w", "-buildmode=pie"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, build(t, tt.flags...))
			p := open(t, s.pid)
			s.load(t, 3, "/", "/deep")
			for d := 1500 * time.Millisecond; ; d *= 2 { // longer if the machine is busy
				m, spin, block := watched(t, s, p, d)
				s.alive(t)
				exact(t, m, "target.recovers", "target.spin", "target.(*block).ServeHTTP", "target.(*truths).handle")
				// The middlewares time themselves without the instructions around, and over
				// calls before and after the window too.
				off := append(near(wallOf(t, m, "target.spin"), spin), near(wallOf(t, m, "target.(*block).ServeHTTP"), block)...)
				switch {
				case len(off) == 0:
					return
				case spin <= 1.15*spins:
					t.Fatal(off)
				case d > 5*time.Second:
					t.Skipf("this machine is too busy: others had the processor amid what was to be measured: %q", off)
				}
			}
		})
	}
}

// spins is for how many nanoseconds the target spins, if nobody else has the processor
// meanwhile.
const spins = 20e3

// watched watches the target for that long, and returns what it said of itself
// meanwhile: mean nanoseconds of a call.
func watched(t *testing.T, s *server, p *probe.Target, d time.Duration) (m *probe.Measurement, spin, block float64) {
	t.Helper()
	w := prepare(t, p, nil)
	before := s.truth(t)
	m = run(t, w, probe.Options{For: d, Window: d})
	after := s.truth(t)
	mean := func(name string) float64 {
		return (after[name].Nanos - before[name].Nanos) / (after[name].Calls - before[name].Calls)
	}
	return m, mean("spin"), mean("block")
}

// exact fails the test unless each owner was called once a request, and was seen
// to return from all calls but those at either end of a window.
func exact(t *testing.T, m *probe.Measurement, names ...string) {
	t.Helper()
	const atEnds = 64
	if m.Requests < 20 {
		t.Fatalf("got %.0f requests, want the load to be seen", m.Requests)
	}
	for _, name := range names {
		w := wallOf(t, m, name)
		if math.Abs(w.Calls-m.Requests) > atEnds {
			t.Errorf("%s: got %.0f calls in %.0f requests", name, w.Calls, m.Requests)
		}
		if w.Calls-w.Seen > atEnds || w.Seen > w.Calls {
			t.Errorf("%s: got %.0f of %.0f calls seen to end", name, w.Seen, w.Calls)
		}
		if w.Total < w.Self || w.P99 < w.P50 {
			t.Errorf("%s: got %+v, want total no less than self and p99 no less than p50", name, w)
		}
	}
}

// near says if an owner's mean time is off by more than a quarter and 20 µs: a busy
// machine interrupts calls between the target's clock and the probes.
func near(w cost.Wall, want float64) (off []string) {
	if got := w.Self / w.Seen; math.Abs(got-want) > want/4+20e3 {
		off = append(off, fmt.Sprintf("%s: got %.1f µs a call, want %.1f", w.Owner.Name, got/1e3, want/1e3))
	}
	return off
}

func TestWatchNamed(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 2, "/")
	m := run(t, prepare(t, p, []string{"target.spin"}), probe.Options{For: 500 * time.Millisecond})
	s.alive(t)
	var names []string
	for _, w := range m.Walls {
		names = append(names, w.Owner.Name)
		if w.Owner.Name == "target.spin" && !w.Around {
			t.Errorf("%s is not known to be around what it calls", w.Owner.Name)
		}
	}
	slices.Sort(names)
	if want := []string{"target.(*block).ServeHTTP", "target.spin"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want it and what is directly inside it: %v", names, want)
	}
}

// spinning prepares to watch the target's spin, after a look at its owners for so long.
func spinning(t *testing.T, p *probe.Target, look time.Duration) *probe.Watch {
	t.Helper()
	owners, err := p.Owners(t.Context(), []string{"target.spin"}, look)
	skip(t, err)
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.NewWatch(owners, probe.Price{Hit: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// TestWatchStrange watches calls by callers that nobody has looked at before: it is said
// that their times are not to be relied on.
func TestWatchStrange(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 2, "/")
	w := spinning(t, p, 400*time.Millisecond)
	m := run(t, w, probe.Options{For: time.Second, Window: time.Second})
	if said := fmt.Sprint(m.Warnings); !strings.Contains(said, "calls of target.spin ") || !strings.Contains(said, "by callers that were not known yet") {
		t.Errorf("got warnings %q, want it said that callers were not known", said)
	}
}

// TestWatchIdle watches a target that nobody loads: it is said why nothing was seen.
func TestWatchIdle(t *testing.T) {
	p := open(t, start(t, build(t)).pid)
	w := spinning(t, p, 100*time.Millisecond)
	if _, err := w.Look(t.Context(), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	m := run(t, w, probe.Options{For: 200 * time.Millisecond})
	if len(m.Warnings) != 1 || !strings.HasSuffix(m.Warnings[0].Error(), "load the service") {
		t.Errorf("got warnings %v, want that there is no load", m.Warnings)
	}
}

func TestUnknownOwner(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	_, err := p.Owners(t.Context(), []string{"target.nobody"}, 10*time.Millisecond)
	skip(t, err)
	if err == nil || !strings.Contains(err.Error(), `no function "target.nobody"`) {
		t.Errorf("got %v, want it named", err)
	}
	if _, err := p.Owners(t.Context(), nil, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "answered no request") {
		t.Errorf("got %v of an idle target, want to be told so", err)
	}
}

// TestWatchSampled watches handlers that never answer: only sampling meets them, whose
// stacks show neither what a method value is called by nor type arguments.
func TestWatchSampled(t *testing.T) {
	s := start(t, build(t))
	for owner, path := range map[string]string{
		"target.unrecovered":      "/unrecovered",
		"target.(*truths).silent": "/silent",
		"target.hushed":           "/hushed",
	} {
		t.Run(owner, func(t *testing.T) {
			p := open(t, s.pid)
			found, err := p.Owners(t.Context(), []string{owner}, 10*time.Millisecond)
			skip(t, err)
			if err != nil {
				t.Fatal(err)
			}
			last := found[len(found)-1] // the others are what makes it
			own := cost.Frame{Func: strings.TrimSuffix(pclntab.Printed(last.Symbols[0]), "-fm"), File: last.Owner.File, Line: 1, Decl: last.Owner.Decl}
			p.Sampled([]cost.Stack{{Frames: []cost.Frame{own, {Func: "net/http.HandlerFunc.ServeHTTP"}}}})
			stop := s.load(t, 2, path)
			defer stop()
			m := run(t, prepare(t, p, nil), probe.Options{For: 500 * time.Millisecond})
			if w := wallOf(t, m, owner); w.Calls < 1 || math.Abs(w.Calls-m.Requests) > 2 {
				t.Errorf("got %g calls in %g requests, want one in each", w.Calls, m.Requests)
			}
		})
	}
}

// TestGenericOwner finds a function that nobody has called yet by what the table would
// call it, without type arguments.
func TestGenericOwner(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	found, err := p.Owners(t.Context(), []string{"target.told"}, 10*time.Millisecond)
	skip(t, err)
	if err != nil || len(found) != 1 || len(found[0].Symbols) == 0 || !strings.Contains(found[0].Symbols[0], "told[") {
		t.Errorf("got %+v, %v, want the literal in told", found, err)
	}
}

// TestPanics has handlers panic, recovered by a middleware, by the server, or
// not told of: frames are left without a return.
func TestPanics(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 3, "/panic", "/", "/abort", "/unrecovered")
	m := run(t, prepare(t, p, nil), probe.Options{For: time.Second})
	s.alive(t)
	w := wallOf(t, m, "target.(*truths).handle")
	if w.Calls < 10 || w.Seen > w.Calls {
		t.Errorf("got %.0f of %.0f calls seen to end", w.Seen, w.Calls)
	}
	// The middleware that recovers returns; that it was left would have its time go
	// on into the next request on the same connection.
	r := wallOf(t, m, "target.recovers")
	if r.Seen < 0.8*r.Calls {
		t.Errorf("target.recovers: got %.0f of %.0f calls seen to end", r.Seen, r.Calls)
	}
}

// TestManyGoroutines has a thousand requests block at a time.
func TestManyGoroutines(t *testing.T) {
	const many = 1000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < 2*many {
		t.Skipf("%d descriptors (%v) are too few for %d connections", files.Cur, err, many)
	}
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, many, "/", "/deep")
	m := run(t, prepare(t, p, nil), probe.Options{For: time.Second, Window: time.Second})
	s.alive(t)
	for _, w := range m.Walls {
		if lost := w.Calls - w.Seen; lost > 1000+w.Calls/20 {
			t.Errorf("%s: got %.0f of %.0f calls seen to end, want all but a thousand under way", w.Owner.Name, w.Seen, w.Calls)
		}
	}
}

// TestDies kills the target while it is watched.
func TestDies(t *testing.T) {
	for d := 700 * time.Millisecond; ; d *= 2 { // a busy machine may not be done placing probes
		s := start(t, build(t))
		p := open(t, s.pid)
		stop := s.load(t, 2, "/")
		w := prepare(t, p, nil)
		killed := time.AfterFunc(d, func() { s.proc.Kill() })
		m, err := w.Run(t.Context(), probe.Options{For: time.Minute, Window: 300 * time.Millisecond})
		killed.Stop()
		stop()
		switch {
		case err == nil && m.Requests > 0 && m.Attached < d+10*time.Second:
			if _, err := p.CPU(); err == nil {
				t.Error("got the CPU time of a dead process")
			}
			return
		case d > 10*time.Second:
			t.Fatalf("killed after %s: got %+v, %v, want what was seen until then", d, m, err)
		}
	}
}

// TestCancelled keeps what was seen until the context was done.
func TestCancelled(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 2, "/")
	w := prepare(t, p, nil)
	for d := 700 * time.Millisecond; ; d *= 2 { // a busy machine may not be done placing probes
		ctx, cancel := context.WithTimeout(t.Context(), d)
		m, err := w.Run(ctx, probe.Options{For: time.Minute})
		cancel()
		switch {
		case err == nil && m.Requests > 0 && m.Attached < 20*time.Second:
			s.alive(t)
			return
		case d > 10*time.Second:
			t.Fatalf("within %s: got %+v, %v, want some requests", d, m, err)
		}
	}
}

// TestTwoAtOnce watches a target twice at a time: each has its own probes on the
// same instructions.
func TestTwoAtOnce(t *testing.T) {
	s := start(t, build(t))
	first, second := open(t, s.pid), open(t, s.pid)
	s.load(t, 2, "/")
	watches := []*probe.Watch{prepare(t, first, nil), prepare(t, second, nil)}
	got := make([]*probe.Measurement, 2)
	var all sync.WaitGroup
	for i, w := range watches {
		all.Go(func() {
			m, err := w.Run(t.Context(), probe.Options{For: time.Second, Window: 500 * time.Millisecond})
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = m
		})
	}
	all.Wait()
	s.alive(t)
	for _, m := range got {
		if m != nil {
			exact(t, m, "target.recovers", "target.spin")
		}
	}
}

// TestOpen says of what is no Go process that it is none.
func TestOpen(t *testing.T) {
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		sleeper.Process.Kill()
		sleeper.Wait()
	}()
	if _, err := probe.Open(sleeper.Process.Pid); err == nil || !strings.Contains(err.Error(), strconv.Itoa(sleeper.Process.Pid)) {
		t.Errorf("got %v of a process that is not written in Go", err)
	}
	if _, err := probe.Open(1 << 30); err == nil || !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("got %v of no process", err)
	}
}

// TestOpenEnded has one that has ended but was not waited for yet told from one
// that there never was.
func TestOpenEnded(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Skip(err)
	}
	defer ended.Wait()
	pid := ended.Process.Pid
	stat := ""
	for range 500 {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		if stat = string(b); strings.Contains(stat, ") Z ") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := probe.Open(pid); err == nil || !strings.Contains(err.Error(), "or has ended") {
		t.Errorf("got %v, want to be told that it has ended; it was %s", err, stat)
	}
}

// TestCPUEnded says once, on one line, that a process has ended.
func TestCPUEnded(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	if _, err := p.CPU(); err != nil {
		t.Fatal(err)
	}
	s.proc.Kill()
	s.done <- <-s.done // the end of the test waits for it, too
	if _, err := p.CPU(); err == nil || !strings.Contains(err.Error(), "ended") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q of a process that has ended, want one line", err)
	}
}

func unwrapAll(err error) error {
	for {
		w, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = w.Unwrap()
	}
}

// prepare finds owners and looks at them, or skips the test where there can be no
// probes.
func prepare(t testing.TB, p *probe.Target, names []string) *probe.Watch {
	t.Helper()
	price, err := probe.Calibrate(t.Context())
	skip(t, err)
	if err != nil {
		t.Fatal(err)
	}
	if price.Hit <= 0 || price.Hit > time.Millisecond || price.Trap < 0 || price.Trap > time.Millisecond {
		t.Errorf("got price %+v", price)
	}
	owners, err := p.Owners(t.Context(), names, 800*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.NewWatch(owners, price)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	f, err := w.Look(t.Context(), 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if f.Hits <= 0 || f.Share <= 0 || len(f.Calls) == 0 {
		t.Errorf("got forecast %+v of a busy target", f)
	}
	return w
}

func run(t *testing.T, w *probe.Watch, o probe.Options) *probe.Measurement {
	t.Helper()
	m, err := w.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, wall := range m.Walls {
		t.Logf("%-26s calls %.0f seen %.0f, self %.2f p50 %.2f p99 %.2f total %.2f µs", wall.Owner.Name, wall.Calls, wall.Seen,
			wall.Self/wall.Seen/1e3, wall.P50/1e3, wall.P99/1e3, wall.Total/wall.Seen/1e3)
	}
	t.Logf("attached %s, requests %.0f, hits %.0f, marks %d, warnings %v", m.Attached, m.Requests, m.Hits, m.Marks, m.Warnings)
	return m
}

// TestBrake slows the target down and counts what was taken.
func TestBrake(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 2, "/")
	owners, err := p.Owners(t.Context(), []string{"target.(*truths).handle"}, 400*time.Millisecond)
	skip(t, err)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.NewBrake(owners[0])
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if !b.Counted {
		t.Error("requests are not counted where net/http begins them")
	}
	if err := b.On(2*time.Millisecond, time.Second); err == nil {
		t.Error("got no error for more than may be taken")
	}
	const each = 300 * time.Microsecond
	off := between(t, b, func() {})
	on := between(t, b, func() { on(t, b, each, time.Minute) })
	if off.Taken != 0 {
		t.Errorf("got %s taken while off", off.Taken)
	}
	mean := on.Taken / time.Duration(max(1, on.Calls))
	if on.Calls < 5 || mean < each*9/10 || mean > 4*each {
		t.Errorf("got %d calls slowed down by %s each, want %s", on.Calls, mean, each)
	}
	if on.CPU < on.Taken/2 {
		t.Errorf("got %s of CPU, of which %s were taken", on.CPU, on.Taken)
	}
	// What is left on stops by itself: its process may have been stopped.
	late := between(t, b, func() {
		on := b.On(each, time.Millisecond)
		if on != nil {
			t.Fatal(on)
		}
		time.Sleep(5 * time.Millisecond)
	})
	again := between(t, b, func() {})
	if again.Taken != 0 || again.Calls == 0 {
		t.Errorf("got %s taken in %d calls after the time was over (%s before)", again.Taken, again.Calls, late.Taken)
	}
	s.alive(t)
}

func on(t *testing.T, b *probe.Brake, each, most time.Duration) {
	if err := b.On(each, most); err != nil {
		t.Fatal(err)
	}
}

// between reads what is counted in a while after something was done.
func between(t *testing.T, b *probe.Brake, do func()) probe.Reading {
	t.Helper()
	if err := b.Off(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	do()
	before, err := b.Read()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	after, err := b.Read()
	if err != nil {
		t.Fatal(err)
	}
	return after.Since(before)
}

// A process with these in its environment slows another one down: the first is
// its number, the second a file to write to once it does.
const (
	crashVar = "PROBE_CRASH_PID"
	readyVar = "PROBE_CRASH_READY"
)

// TestCrash kills a process that slows the target down: the kernel takes its
// probes away, and the target goes on as before.
func TestCrash(t *testing.T) {
	s := start(t, build(t))
	s.load(t, 2, "/")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), crashVar+"="+strconv.Itoa(s.pid), readyVar+"="+ready)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		if text, err := os.ReadFile(ready); err == nil && len(text) > 0 {
			if string(text) != "ready" {
				cmd.Wait()
				t.Skip(string(text))
			}
			break
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			cmd.Wait()
			t.Fatal("the other process placed no probes")
		}
		time.Sleep(10 * time.Millisecond)
	}
	slowed := handled(t, s)
	if slowed < 500*time.Microsecond {
		t.Errorf("got %s a call while slowed down by 1 ms", slowed)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	free := slowed
	for range 10 { // a busy machine makes it longer, a probe at least a millisecond
		if free = handled(t, s); free < time.Millisecond/2 {
			break
		}
	}
	if free > time.Millisecond*9/10 {
		t.Errorf("got %s a call after the other process was killed, %s before: its probes are still there", free, slowed)
	}
	s.alive(t)
}

// crash slows a process down until it is killed, and has another target of it besides,
// as who counts requests of several processes has.
func crash(pid string) {
	tell := func(text string) {
		os.WriteFile(os.Getenv(readyVar), []byte(text), 0o600)
	}
	n, _ := strconv.Atoi(pid)
	p, err := probe.Open(n)
	if err != nil {
		tell(err.Error())
		os.Exit(1)
	}
	owners, err := p.Owners(context.Background(), []string{"target.(*truths).handle"}, 300*time.Millisecond)
	if err != nil {
		tell(err.Error())
		os.Exit(1)
	}
	b, err := p.NewBrake(owners[0])
	if err == nil {
		err = b.On(time.Millisecond, time.Hour)
	}
	if err == nil {
		err = besides(n)
	}
	if err != nil {
		tell(err.Error())
		os.Exit(1)
	}
	tell("ready")
	time.Sleep(time.Hour)
}

// besides prepares to count a process's requests by a target of its own.
func besides(pid int) error {
	p, err := probe.Open(pid)
	if err == nil {
		_, err = p.NewCounter(probe.Price{})
	}
	return err
}

// handled returns the least time that an answer took of many: the slow-down is in
// all of them, what else the machine does is not.
func handled(t *testing.T, s *server) time.Duration {
	t.Helper()
	best := time.Hour
	for range 50 {
		begun := time.Now()
		if status := get(http.DefaultClient, s.url+"/fast"); status != http.StatusOK {
			t.Fatalf("the target answers %d", status)
		}
		best = min(best, time.Since(begun))
	}
	return best
}

// TestUnprivileged asks as a user without rights.
func TestUnprivileged(t *testing.T) {
	if pid := os.Getenv(watchVar); pid != "" {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		_, err = probe.Open(n)
		_, priceErr := probe.Calibrate(t.Context())
		for _, err := range []error{err, priceErr} {
			if !errors.Is(err, cost.ErrNotSupported) || !strings.Contains(err.Error(), "needs root, or CAP_") {
				t.Errorf("got %v, want it to say what is needed", err)
			}
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	// A copy: the one that go test runs may lie where nobody may read.
	dir, err := os.MkdirTemp("/tmp", "probe")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "test")
	if err := errors.Join(os.WriteFile(path, self, 0o755), os.Chmod(path, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run=^TestUnprivileged$", "-test.v")
	cmd.Env = append(os.Environ(), watchVar+"="+strconv.Itoa(os.Getpid()), "TMPDIR=/tmp")
	cmd.Dir = "/"
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestUnprivileged") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// watchVar is the number of a process that a test without rights is to watch.
const watchVar = "PROBE_WATCH_PID"
