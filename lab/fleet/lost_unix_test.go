//go:build unix

package fleet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/fleet/agent"
	"github.com/tarehq/tare/load"
)

// noticed is how soon a lost agent is noticed, but for what the machine keeps this process waiting.
const noticed = 2 * time.Second

// watchStalls returns what says for how long this process was kept from running since, as far as
// one sees who sleeps for a moment again and again.
func watchStalls(t *testing.T) func() time.Duration {
	const nap, usual = 10 * time.Millisecond, 5 * time.Millisecond
	var stalled atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			begun := time.Now()
			time.Sleep(nap)
			if more := time.Since(begun) - nap; more > usual {
				stalled.Add(int64(more))
			}
		}
	}()
	return func() time.Duration { return time.Duration(stalled.Load()) }
}

// An agent that is killed, frozen or behind a parted network gives no result, and keeps the
// others from giving one.
func TestLost(t *testing.T) {
	dir, mine := makeCerts(t)
	for _, c := range []struct {
		name string
		lose func(t *testing.T, child *os.Process, part func())
	}{
		{"killed", func(t *testing.T, child *os.Process, _ func()) { must(t, child.Kill()) }},
		{"frozen", func(t *testing.T, child *os.Process, _ func()) {
			must(t, child.Signal(syscall.SIGSTOP))
			t.Cleanup(func() { must(t, child.Signal(syscall.SIGCONT)) })
		}},
		{"parted", func(_ *testing.T, _ *os.Process, part func()) { part() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			url, place := startCounting(t, &asked)
			sound := startAgent(t, mine, agent.Config{Allow: []string{place}})
			child, addr := startChild(t, agentCerts+"="+mine, agentAllow+"="+place)
			via, part := startRelay(t, addr)
			f := mustConnect(t, dir, sound, via)
			began := make(chan struct{})
			var once sync.Once
			o := constant(url, 100, time.Hour)
			o.Progress = func(load.Snapshot) { once.Do(func() { close(began) }) }
			ended := make(chan error, 1)
			go func() {
				rep, err := f.Run(t.Context(), o)
				if rep != nil {
					err = errors.New("there is a result")
				}
				ended <- err
			}()
			select {
			case <-began:
			case err := <-ended:
				t.Fatalf("the load ended at once: %v", err)
			}
			stalled := watchStalls(t)
			at := time.Now()
			c.lose(t, child, part)
			err := <-ended
			took := time.Since(at)
			if !errors.Is(err, fleet.ErrLost) || !strings.Contains(err.Error(), via) {
				t.Errorf("got %v, want that %s was lost", err, via)
			}
			if most := noticed + stalled(); took > most {
				t.Errorf("noticed after %v, want at most %v", took, most)
			}
			t.Logf("noticed after %v, of which this process was kept waiting for %v: %v", took.Round(time.Millisecond), stalled().Round(time.Millisecond), err)
			f.Close()
			// The other agent is free again, and the lost one, which heard nothing either, has
			// stopped as well.
			mustConnect(t, dir, sound).Close()
			for deadline := time.Now().Add(8 * time.Second); ; {
				before := asked.Load()
				time.Sleep(400 * time.Millisecond) // of 20 requests, if the load went on
				if asked.Load() == before {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the load goes on")
				}
			}
		})
	}
}

// In a runner of trials, two lost loads can be made again, and the third ends the run.
func TestLostAgain(t *testing.T) {
	dir, mine := makeCerts(t)
	url, place := startServer(t)
	child, addr := startChild(t, agentCerts+"="+mine, agentAllow+"="+place)
	f := mustConnect(t, dir, addr)
	must(t, child.Kill())
	for i := range 3 {
		res, err := f.Load(t.Context(), constant(url, 10, time.Second))
		if !errors.Is(err, fleet.ErrLost) || (res != nil) != (i < 2) {
			t.Errorf("load %d without the agent: result %v, %v; want ErrLost, with an empty result but for the third", i+1, res, err)
		}
		if res != nil && res.Counts.Scheduled != 0 {
			t.Errorf("load %d has %d requests", i+1, res.Counts.Scheduled)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startRelay passes bytes on to an address until the network is parted: then it passes no
// more, and closes nothing.
func startRelay(t *testing.T, to string) (addr string, part func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var parted atomic.Bool
	var all sync.WaitGroup
	pass := func(from, into net.Conn) {
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if parted.Load() {
				<-ctx.Done()
				return
			}
			if n > 0 {
				_, werr := into.Write(b[:n])
				err = errors.Join(err, werr)
			}
			if err != nil {
				into.Close()
				return
			}
		}
	}
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			into, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			for _, c := range []io.Closer{from, into} {
				context.AfterFunc(ctx, func() { c.Close() })
			}
			all.Go(func() { pass(from, into) })
			all.Go(func() { pass(into, from) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		cancel()
		all.Wait()
	})
	return l.Addr().String(), func() { parted.Store(true) }
}

// BenchmarkCoordinator has 100 simulated agents, in a process of their own, send what they
// would of 1,000 answers a second each. It reports the coordinator's CPU in percent of one.
func BenchmarkCoordinator(b *testing.B) {
	dir, mine := makeCerts(b)
	_, addr := startChild(b, simulation+"="+mine)
	agents := make([]string, 100)
	for i := range agents {
		agents[i] = addr
	}
	f := mustConnect(b, dir, agents...)
	const length = 20 * time.Second
	o := constant("http://127.0.0.1:1/", 100_000, length)
	o.Progress = func(load.Snapshot) {}
	var cpu time.Duration
	o.Mark = func(begin bool) {
		if begin {
			cpu -= ownCPU(b)
		} else {
			cpu += ownCPU(b)
		}
	}
	n := 0
	for b.Loop() {
		rep, err := f.Run(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		if got, want := rep.Result.Counts.Answered(), uint64(100*1000*20); got != want {
			b.Fatalf("%d answers, want %d", got, want)
		}
		n++
	}
	b.ReportMetric(100*cpu.Seconds()/(float64(n)*length.Seconds()), "%core")
}

// ownCPU is the CPU time of this process.
func ownCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
