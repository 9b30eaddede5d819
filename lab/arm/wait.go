package arm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// peakEvery is how often the memory of a program that runs to its end is read.
const peakEvery = 20 * time.Millisecond

// Wait waits until a program that Start has started ends by itself, and returns
// how it did, with all of its output written. The caller must still call Stop.
//
// Note: the peak is read off the running process, so that what it takes in its last 20 ms may be
// missed. The kernel's own maximum (ru_maxrss) is worthless here: it begins with the memory of
// tare, which the process shares between fork and exec.
func (a *Process) Wait(ctx context.Context) (Ending, error) {
	if a.cmd == nil {
		return Ending{}, fmt.Errorf("waiting for the arm: %w", errNoProcess)
	}
	var e Ending
	look := time.NewTicker(peakEvery)
	defer look.Stop()
	for {
		select {
		case <-a.exited:
			e.Elapsed = time.Since(a.began)
			e.CPU = a.cmd.ProcessState.UserTime() + a.cmd.ProcessState.SystemTime()
			for _, p := range a.pumps {
				p.settle()
			}
			if a.err != nil {
				e.Err = errors.New(a.err.Error() + a.errTail.quoted())
			}
			return e, nil
		case <-look.C:
			e.PeakRSS = max(e.PeakRSS, peakOf(a.PID()))
		case <-ctx.Done():
			return Ending{}, fmt.Errorf("waiting for the arm: %w", ctx.Err())
		}
	}
}
