package arm

import (
	"fmt"
	"io"
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

// profile records a CPU profile or an execution trace for so long.
func profile(w io.Writer, kind string, d time.Duration) error {
	start, stop := pprof.StartCPUProfile, pprof.StopCPUProfile
	if kind == "trace" {
		start, stop = trace.Start, trace.Stop
	}
	if err := start(w); err != nil {
		return fmt.Errorf("starting to record: %w", err)
	}
	time.Sleep(d)
	stop()
	return nil
}
