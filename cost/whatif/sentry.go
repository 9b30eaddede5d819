package whatif

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// ErrEnded says that the process was gone.
var ErrEnded = bpf.ErrEnded

// ErrUnwatched says that AbortP99 was given and response times cannot be watched.
var ErrUnwatched = errors.New("response times cannot be watched")

// sentry watches response times while an owner is slowed down: by the load, or else
// by timing the service's own answers from outside, or not at all.
type sentry struct {
	load    *capture.Load // nil: there is no load
	answers *reply.Watch  // nil: they are not timed
	lost    chan error    // why timing them ended
	missing error         // why response times are not watched
}

// startSentry watches response times until the context is done, or until they exceed
// the bound, which stops everything.
func (r *run) startSentry(ctx context.Context, stop context.CancelCauseFunc) (*sentry, error) {
	g := &guard{bound: r.AbortP99, stop: stop}
	if r.Load != nil {
		o := *r.Load
		o.Progress = func(s load.Snapshot) { g.check(answersOf(s)) }
		l, err := capture.StartLoad(ctx, o)
		return &sentry{load: l}, err
	}
	w, err := reply.Start(r.PID)
	switch {
	case errors.Is(err, cost.ErrNotSupported) && r.AbortP99 == 0:
		return &sentry{missing: err}, nil
	case errors.Is(err, cost.ErrNotSupported):
		return nil, fmt.Errorf("%w: %w", ErrUnwatched, err)
	case err != nil:
		return nil, err
	}
	s := &sentry{answers: w, lost: make(chan error, 1)}
	go func() { s.lost <- followAnswers(ctx, w, g) }()
	return s, nil
}

// followAnswers lets the guard check what was seen, until the context is done.
func followAnswers(ctx context.Context, w *reply.Watch, g *guard) error {
	tick := time.NewTicker(250 * time.Millisecond) // as often as a load reports
	defer tick.Stop()
	for begun := time.Now(); ; {
		seen, err := w.Read()
		if err != nil {
			err = fmt.Errorf("response times are not watched any more: %w", err)
			g.stop(err)
			return err
		}
		times := timesOf(seen)
		g.check(answers{at: time.Since(begun), times: times, flight: seen.Waiting, ended: times.Count()})
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

// describe returns a line on who watches, and when that ends the run; none of the load,
// which was asked for.
func (s *sentry) describe(bound time.Duration) (string, error) {
	const otherwise = "with a load of its own, tare stops when they exceed a bound"
	switch {
	case s.missing != nil:
		return fmt.Sprintf("response times are not watched meanwhile (%v): %s", s.missing, otherwise), nil
	case s.answers == nil:
		return "", nil
	}
	seen, err := s.answers.Read()
	if err != nil {
		return "", err
	}
	times := timesOf(seen)
	if times.Count() == 0 {
		return "no answer of the service was seen yet, so its response times are not watched: " + otherwise, nil
	}
	above := fmt.Sprintf("ten times that of the first second, at least %s", leastBound)
	if bound > 0 {
		above = bound.String()
	}
	return fmt.Sprintf("timing its answers, %s so far with a p99 of %s: tare stops when the p99 of a second is above %s",
		unit.Number(float64(times.Count())), unit.Format(float64(times.Quantile(0.99)), unit.Nanoseconds), above), nil
}

// end waits until the watch is over; the context is done by then.
func (s *sentry) end() ([]error, error) {
	switch {
	case s.load != nil:
		return s.load.End()
	case s.answers != nil:
		return nil, errors.Join(<-s.lost, s.answers.Close())
	}
	return nil, nil
}
