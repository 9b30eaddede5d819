package main

import (
	"fmt"
	"os"

	"github.com/tarehq/tare/cost/bpf"
)

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
