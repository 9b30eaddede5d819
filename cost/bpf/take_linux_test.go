//go:build linux && amd64

package bpf_test

import (
	"math"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf"
)

// TestTake takes what was seen again and again: each time what is new, of the processes that
// are there then, with stacks that add up to what the kernel counted of each.
func TestTake(t *testing.T) {
	exe := build(t)
	first := serve(t, exe, &syscall.SysProcAttr{})
	second := serve(t, exe, &syscall.SysProcAttr{})
	var mu sync.Mutex
	pids := []int{first.pid}
	s := begin(t, bpf.Options{Hz: 99, Fetch: 100 * time.Millisecond, Find: func() ([]int, error) {
		mu.Lock()
		defer mu.Unlock()
		return pids, nil
	}})
	take := func() map[int]bpf.Process {
		t.Helper()
		time.Sleep(time.Second)
		p, err := s.Take()
		if err != nil {
			t.Fatal(err)
		}
		of := map[int]bpf.Process{}
		var all float64
		for _, one := range p.Processes {
			of[one.PID] = one
			var sum float64
			for _, s := range one.Stacks {
				sum += s.Value
			}
			all += sum
			if used := float64(one.CPU); math.Abs(sum-used) > 0.01*used+1 {
				t.Errorf("process %d: its stacks come to %.0f ns of %.0f", one.PID, sum, used)
			}
		}
		if math.Abs(all-float64(p.CPU)) > 0.01*float64(p.CPU)+1 {
			t.Errorf("stacks come to %.0f ns of %.0f", all, float64(p.CPU))
		}
		if p.Duration < 900*time.Millisecond || p.Duration > 20*time.Second {
			t.Errorf("got a profile of %s, want about a second", p.Duration)
		}
		return of
	}
	if got := take(); len(got) != 1 || got[first.pid].Seen == 0 {
		t.Errorf("got %d processes, want the first alone, seen", len(got))
	}
	mu.Lock()
	pids = append(pids, second.pid)
	mu.Unlock()
	take()
	if got := take(); len(got) != 2 || got[first.pid].Ended || got[first.pid].CPU > 20*time.Second {
		t.Errorf("got %d processes, want both, and of the first what is new: %s", len(got), got[first.pid].CPU)
	}
	find := func(found ...int) {
		mu.Lock()
		defer mu.Unlock()
		pids = found
	}
	find(second.pid)
	if got := take(); !got[first.pid].Ended || got[second.pid].Ended {
		t.Error("want what is not found any more to have ended")
	}
	find(first.pid, second.pid)
	take()
	if got := take(); got[first.pid].Seen == 0 || got[first.pid].Ended || len(got) != 2 {
		t.Errorf("got %d processes, want both, as the first was found again", len(got))
	}
	first.kill()
	if got := take(); !got[first.pid].Ended || got[second.pid].Ended {
		t.Error("want the first ended and the second not")
	}
	if got := take(); len(got) != 1 || got[second.pid].Seen == 0 {
		t.Errorf("got %d processes, want the second alone, seen", len(got))
	}
	if left, err := s.Watched(); err != nil || !slices.Equal(left, []int{second.pid}) {
		t.Errorf("the kernel has samples taken of %v, %v, want %d alone", left, err, second.pid)
	}
	select {
	case <-s.Ended():
		t.Error("it has ended, want it to wait for what Find finds")
	default:
	}
	if _, err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// TestPace changes the rates amid the sampling: samples come as often as is said, and stacks go on
// to add up to what the kernel counted.
func TestPace(t *testing.T) {
	service := serve(t, build(t), &syscall.SysProcAttr{})
	s := begin(t, bpf.Options{Hz: 19, Fetch: time.Second, Find: func() ([]int, error) { return []int{service.pid}, nil }})
	perCPU := func() float64 {
		t.Helper()
		time.Sleep(2 * time.Second)
		p, err := s.Take()
		if err != nil {
			t.Fatal(err)
		}
		var sum float64
		for _, s := range p.Stacks {
			sum += s.Value
		}
		if used := float64(p.CPU); len(p.Processes) != 1 || math.Abs(sum-used) > 0.01*used+1 {
			t.Errorf("stacks of %d processes come to %.0f ns of %.0f", len(p.Processes), sum, used)
		}
		return float64(p.Seen) / p.CPU.Seconds()
	}
	seldom := perCPU()
	if err := s.Pace(499, 99, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	often := perCPU()
	if err := s.Pace(19, 4, time.Second); err != nil {
		t.Fatal(err)
	}
	again := perCPU()
	if often < 5*max(seldom, again) || min(seldom, again) == 0 {
		t.Errorf("at 19, 499 and 19 Hz: %.0f, %.0f and %.0f samples a second of CPU", seldom, often, again)
	}
	if err := s.Pace(bpf.MaxHz+1, 1, time.Second); err == nil {
		t.Error("a rate above the highest: no error")
	}
	if _, err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// BenchmarkPace changes the rates, and has the plain alternative beside it: to stop, to start again
// and to name what is seen.
func BenchmarkPace(b *testing.B) {
	find := func() ([]int, error) { return []int{os.Getpid()}, nil }
	begin := func(hz int) *bpf.Sampler {
		s, err := bpf.Start(bpf.Options{Hz: hz, Find: find})
		if err != nil {
			b.Skip(err)
		}
		if _, err := s.Take(); err != nil {
			b.Fatal(err)
		}
		return s
	}
	b.Run("by=pace", func(b *testing.B) {
		s := begin(19)
		defer s.Stop()
		for k := 0; b.Loop(); k++ {
			if err := s.Pace(9+10*(k%2), 4, time.Second); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by=start", func(b *testing.B) {
		for k := 0; b.Loop(); k++ {
			if _, err := begin(9 + 10*(k%2)).Stop(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestEndedBeforeBegin has a process end between when it was looked at and the first tick: its
// number may be another's then.
func TestEndedBeforeBegin(t *testing.T) {
	exe := build(t)
	first, second := serve(t, exe, &syscall.SysProcAttr{}), serve(t, exe, &syscall.SysProcAttr{})
	o := bpf.Options{Hz: 99, Find: func() ([]int, error) { return []int{first.pid, second.pid}, nil }}
	s, err := bpf.StartAfter(o, first.kill)
	s = started(t, s, err)
	if left, err := s.Watched(); err != nil || !slices.Equal(left, []int{second.pid}) {
		t.Errorf("the kernel has samples taken of %v, %v, want %d alone", left, err, second.pid)
	}
	if _, err := s.Stop(); err != nil {
		t.Error(err)
	}
}
