//go:build linux && (amd64 || arm64)

package probe

import (
	"errors"
	"os"
	"time"
)

// inService is what hits take in a service that take so long in the loop that
// calibration measures, where nothing comes between two of them: BenchmarkWatching said
// 1.1 to 3.1 times as long in fourteen runs, 2.3 in the median.
func inService(d time.Duration) time.Duration {
	const times = 2.3
	return time.Duration(times * float64(max(0, d)))
}

// calibrated is the function that calibration watches.
const calibrated = "github.com/tarehq/tare/cost/bpf/probe.spinOnce"

// openSelf opens this process, and finds in it the function that calibration watches.
func openSelf() (t *Target, pushes []uint64, err error) {
	if t, err = Open(os.Getpid()); err != nil {
		return nil, nil, err
	}
	if pushes = t.pushes([]string{calibrated}); len(pushes) != 1 {
		t.Close()
		return nil, nil, errors.New("calibrating: the function to probe is not in this program")
	}
	return t, pushes, nil
}

// quickest returns what a call of spinOnce takes, at its best of many tries: what
// else runs on the machine only makes it longer.
func quickest() time.Duration {
	const tries, calls = 60, 400
	best := time.Duration(1 << 62)
	for range tries {
		begun := time.Now()
		around(calls)
		best = min(best, time.Since(begun))
	}
	return best / calls
}

//go:noinline
func around(n int) {
	for range n {
		spinOnce()
	}
}

//go:noinline
func spinOnce() { nothing() } // has a prologue, since it calls something

//go:noinline
func nothing() {}
