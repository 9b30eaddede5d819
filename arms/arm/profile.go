package arm

import (
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"time"
)

// snapshot writes the heap or goroutine profile in pprof's form.
func snapshot(w io.Writer, kind string) error {
	name := map[string]string{"heap": "heap", "goroutines": "goroutine"}[kind]
	if err := pprof.Lookup(name).WriteTo(w, 0); err != nil {
		return fmt.Errorf("writing the %s profile: %w", name, err)
	}
	return nil
}

// cpuProfile records a CPU profile for so long, with rate samples a second, 0 for
// the runtime's usual one.
//
// The rate set first is the one that holds: StartCPUProfile asks for its own, is
// refused with a line on standard error, and goes on.
func cpuProfile(w io.Writer, d time.Duration, rate int) error {
	if rate > 0 {
		runtime.SetCPUProfileRate(rate)
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return fmt.Errorf("starting to record: %w", err)
	}
	time.Sleep(d)
	pprof.StopCPUProfile()
	return nil
}

// executionTrace records what the runtime does for so long.
func executionTrace(w io.Writer, d time.Duration) error {
	if err := trace.Start(w); err != nil {
		return fmt.Errorf("starting to record: %w", err)
	}
	time.Sleep(d)
	trace.Stop()
	return nil
}
