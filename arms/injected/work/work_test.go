package work_test

import (
	"encoding/json"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/injected/work"
)

type account struct {
	Calls    int64
	NS       int64
	CPU      float64 `json:"cpu_ns"`
	CPUCalls int64   `json:"cpu_calls"`
	Bytes    int64
	Wait     int64 `json:"wait_ns"`
}

func truth(t *testing.T, s *work.Set) map[string]account {
	t.Helper()
	var all map[string]account
	if err := json.Unmarshal(s.Truth(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func set(t *testing.T, a work.Amounts) *work.Set {
	t.Helper()
	s, err := work.New(a)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNothing(t *testing.T) {
	s := set(t, work.Amounts{})
	if *s != (work.Set{}) {
		t.Errorf("amounts of nothing: got %+v, want all nil", s)
	}
	for what, got := range truth(t, s) {
		if got != (account{}) {
			t.Errorf("%s: got %+v, want nothing", what, got)
		}
	}
}

// TestAccount checks what must hold on any machine, however busy: nothing is less than
// what cannot be less.
func TestAccount(t *testing.T) {
	const calls = 320
	s := set(t, work.Amounts{Spin: 50 * time.Microsecond, Alloc: 10_000, Block: time.Microsecond, Lock: 10 * time.Microsecond, Log: time.Microsecond})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range calls / 4 {
				s.Spin.Do()
				s.Alloc.Do()
				s.Block.Do()
				s.Lock.Do()
				s.Log.Do("GET", "/")
			}
		})
	}
	all.Wait()
	got := truth(t, s)
	for what, a := range got {
		if a.Calls != calls {
			t.Errorf("%s: got %+v, want %d calls", what, a, calls)
		}
	}
	if a := got["alloc"]; a.Bytes != calls*(10_240+24) { // the next size, and the slice's own
		t.Errorf("alloc: got %d bytes a call, want %d", a.Bytes/calls, 10_240+24)
	}
	if got["block"].NS < calls*1000 {
		t.Errorf("block: got %d ns, want at least %d", got["block"].NS, calls*1000)
	}
	if runtime.GOOS != "linux" {
		t.Skip("no CPU clock of a thread here")
	}
	for _, what := range []string{"spin", "lock"} {
		if a := got[what]; a.CPUCalls == 0 || a.CPUCalls > calls/16 || a.CPU <= 0 {
			t.Errorf("%s: got %g ns of CPU from %d calls, want some from at most %d", what, a.CPU, a.CPUCalls, calls/16)
		}
	}
}

// TestAside holds that spins done aside take the CPU time asked for, all of them.
func TestAside(t *testing.T) {
	const calls = 1000
	d := 20 * time.Microsecond
	s, err := work.New(work.Amounts{Spin: d, Aside: true})
	if err != nil {
		t.Skip(err)
	}
	for range calls {
		s.Spin.Do()
	}
	for end := time.Now().Add(time.Minute); truth(t, s)["spin"].CPUCalls < calls; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: %+v of %d calls", truth(t, s)["spin"], calls)
		}
	}
	if each := truth(t, s)["spin"].CPU / calls; each < float64(d) || each > 1.5*float64(d) {
		t.Errorf("%.0f ns of CPU a call, want %v", each, d)
	}
}
