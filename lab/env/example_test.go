package env_test

import (
	"context"
	"fmt"
	"testing/fstest"
	"time"

	"github.com/tarehq/tare/lab/env"
)

// A machine is read from files, here from one of which two things are told.
func ExampleMachine_Read() {
	m := env.This()
	m.Root = fstest.MapFS{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": {Data: []byte("powersave\n")},
		"proc/sys/kernel/randomize_va_space":                   {Data: []byte("2\n")},
	}
	m.Pause = func(_ context.Context, d time.Duration) time.Duration { return d }
	for _, f := range m.Read(context.Background()) {
		if f.Name == "governor" || f.Name == "address layout" {
			fmt.Printf("%s: %s (%s) %s\n", f.Name, f.Value, f.Verdict, f.Remedy)
		}
	}
	// Output:
	// governor: powersave (disturbs) sudo cpupower frequency-set -g performance
	// address layout: drawn anew for every process (ok)
}
