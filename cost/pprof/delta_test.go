package pprof_test

import (
	"bytes"
	"runtime"
	rpprof "runtime/pprof"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost/pprof"
)

//go:noinline
func allocate(n int) (last []byte) {
	for range n {
		last = make([]byte, 1<<20) // larger than what the profiler samples every
	}
	return last
}

func heap(t *testing.T) *pprof.Profile {
	t.Helper()
	runtime.GC()
	runtime.GC() // what was allocated before the first is published by now
	var b bytes.Buffer
	if err := rpprof.Lookup("heap").WriteTo(&b, 0); err != nil {
		t.Fatal(err)
	}
	p, err := pprof.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSince checks that of two profiles just what came between is left, and that
// it can be written and read again.
func TestSince(t *testing.T) {
	sink.Add(uint64(len(allocate(8))))
	earlier := heap(t)
	sink.Add(uint64(len(allocate(32))))
	later := heap(t)
	delta, err := later.Since(earlier)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := delta.Write(&out); err != nil {
		t.Fatal(err)
	}
	again, err := pprof.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]*pprof.Profile{"delta": delta, "written and read": again} {
		var got float64
		for _, s := range p.Stacks {
			if strings.HasSuffix(s.Frames[0].Func, ".allocate") {
				got += s.Value
			}
		}
		// Some are missed, and those that are seen weigh more, for that.
		if got < 24<<20 || got > 48<<20 {
			t.Errorf("%s: %.0f bytes by allocate, want about %d", what, got, 32<<20)
		}
	}
	if _, err := earlier.Since(later); err == nil {
		t.Error("subtracting the later profile succeeded, want an error")
	}
}

func TestSinceRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := rpprof.StartCPUProfile(&b); err != nil {
		t.Fatal(err)
	}
	rpprof.StopCPUProfile()
	cpu, err := pprof.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cpu.Since(cpu); err == nil || !strings.Contains(err.Error(), "only allocations add up") {
		t.Errorf("subtracting CPU profiles: error %v, want that only allocations add up", err)
	}
}
