package arm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	firstPoll   = 200 * time.Microsecond
	slowestPoll = 20 * time.Millisecond
	readyWithin = 60 * time.Second // whatever the context says
)

// Ready calls probe until it succeeds and returns the time from the fork to then. It polls from
// 0.2 ms upwards, each time a quarter later, so that the time is at most about a fifth too long.
// The probe's context ends with the arm. When time runs out the error holds the probe's last and
// what the arm wrote to standard error.
func (a *Process) Ready(ctx context.Context, probe func(context.Context) error) (startup time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	probing, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() {
		select {
		case <-a.exited:
			giveUp()
		case <-probing.Done():
		}
	}()
	var last error
	for wait := firstPoll; ; wait = min(wait*5/4, slowestPoll) {
		err := probe(probing)
		startup = time.Since(a.began)
		select {
		case <-a.exited:
			return 0, fmt.Errorf("waiting for the first correct answer: %w", a.died())
		default:
		}
		if err == nil {
			return startup, nil
		}
		if last == nil || ctx.Err() == nil { // that time ran out within a probe explains nothing
			last = err
		}
		select {
		case <-time.After(wait):
		case <-a.exited: // as is said after the next probe, which has nothing to wait for
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return 0, fmt.Errorf("waiting for the first correct answer: %w", ctx.Err())
			}
			return 0, fmt.Errorf("no correct answer within %v: %w%s", startup.Round(10*time.Millisecond), last, a.errTail.quoted())
		}
	}
}
