package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// sentry is who watches response times while an owner is slowed down: the load, or
// else the service's own answers are timed from outside, or nobody does.
type sentry struct {
	ended   <-chan driven // what became of it
	answers *reply.Watch  // nil where they are not timed
	nobody  error         // why nobody watches
}

// watch has response times watched until the context is done, or somebody's get out
// of bounds, which stops everything.
func (c *whatifCmd) watch(ctx context.Context, stop context.CancelCauseFunc) (*sentry, error) {
	g := &guard{bound: c.AbortP99, stop: stop}
	if c.Load != "" {
		ended, err := c.drive(ctx, g)
		return &sentry{ended: ended}, err
	}
	done := make(chan driven, 1)
	w, err := reply.Start(c.PID)
	switch {
	case errors.Is(err, cost.ErrNotSupported) && c.AbortP99 == 0:
		done <- driven{}
		return &sentry{ended: done, nobody: err}, nil
	case errors.Is(err, cost.ErrNotSupported):
		return nil, &cli.Failure{Status: cli.ExitFailed, Hint: "with --load URL response times are measured by who loads it",
			Err: fmt.Errorf("--abort-p99: nobody would watch response times: %w", err)}
	case err != nil:
		return nil, unprobed(err)
	}
	go func() { done <- driven{err: follow(ctx, w, g)} }()
	return &sentry{ended: done, answers: w}, nil
}

// follow has the guard look at what was seen, until the context is done.
func follow(ctx context.Context, w *reply.Watch, g *guard) error {
	tick := time.NewTicker(250 * time.Millisecond) // as a load tells of itself
	defer tick.Stop()
	for begun := time.Now(); ; {
		seen, err := w.Read()
		if err != nil {
			err = fmt.Errorf("nobody watches response times any more: %w", err)
			g.stop(&cli.Failure{Status: cli.ExitFailed, Err: err})
			return err
		}
		times := timesOf(seen)
		g.look(answers{at: time.Since(begun), times: times, flight: seen.Waiting, ended: times.Count()})
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// timesOf returns how long answers took, each in the middle of its bucket.
func timesOf(seen reply.Seen) *hist.Hist {
	h := hist.New()
	for _, b := range seen.Times {
		h.RecordN(int64(b.From+b.Below)/2, b.Count)
	}
	return h
}

// says returns a line on who watches, and when that ends the run; none of the load,
// which was asked for.
func (w *sentry) says(bound time.Duration) (string, error) {
	const otherwise = "with --load URL it is stopped when they get out of bounds"
	if w.nobody != nil {
		return fmt.Sprintf("nobody watches its response times meanwhile (%v): %s", w.nobody, otherwise), nil
	}
	if w.answers == nil {
		return "", nil
	}
	seen, err := w.answers.Read()
	if err != nil {
		return "", err
	}
	times := timesOf(seen)
	if times.Count() == 0 {
		return "nobody watches its response times as long as it is not seen to answer, which it was not yet: " + otherwise, nil
	}
	above := fmt.Sprintf("ten times that of the first second, at least %s", leastBound)
	if bound > 0 {
		above = bound.String()
	}
	return fmt.Sprintf("its answers are timed meanwhile, %s until now with a p99 of %s: it is stopped when that of a second is above %s",
		unit.Number(float64(times.Count())), unit.Format(float64(times.Quantile(0.99)), unit.Nanoseconds), above), nil
}

// end waits until nobody watches any more.
func (w *sentry) end() driven {
	came := <-w.ended
	if w.answers != nil {
		came.err = errors.Join(came.err, w.answers.Close())
	}
	return came
}
