package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
)

// TestTimerRingsLate has the lateness of samples told where it is more than that of
// a processor's own timer.
func TestTimerRingsLate(t *testing.T) {
	for late, want := range map[int64]bool{0: false, 2_000: false, 12_700: true} {
		text := samplingText(&cost.Sampled{Hz: 99, Clock: "a timer", Stacks: 1475, Covered: 1, Late: late})
		if got := strings.Contains(text, "rings 12.7 µs late"); got != want {
			t.Errorf("a timer that rings %d ns late is told of: %v, want %v\n%s", late, got, want, text)
		}
	}
}

// condition tells scripts what the machine has: bpf is the right and the means to
// sample a process from outside.
func condition(name string) (bool, error) {
	if name != "bpf" {
		return false, fmt.Errorf("condition %q is not known", name)
	}
	s, err := bpf.Start(bpf.Options{PID: os.Getpid(), Hz: 1})
	if err != nil {
		fmt.Fprintf(os.Stderr, "scripts leave out what samples from outside: %v\n", err)
		return false, nil
	}
	_, err = s.Stop()
	return err == nil, err
}
