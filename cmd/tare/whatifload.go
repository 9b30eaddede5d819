package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// tooSlow ends a run whose response times got out of bounds.
type tooSlow struct{ p99, bound time.Duration }

func (e *tooSlow) Error() string {
	return fmt.Sprintf("p99 of the last second is %s, more than %s", unit.Format(float64(e.p99), unit.Nanoseconds), unit.Format(float64(e.bound), unit.Nanoseconds))
}

// guard ends a run when the p99 of about a second of answers exceeds a bound.
type guard struct {
	bound  time.Duration // 0: not known before the first second is over
	stop   context.CancelCauseFunc
	before *hist.Hist
	at     time.Duration
}

// What response times may come to where nobody says: so many times the p99 of the
// first second, when nothing is slowed down yet, but no less than a time that any
// service has now and then.
const (
	worse      = 10
	leastBound = 100 * time.Millisecond
)

func (g *guard) look(s load.Snapshot) {
	if g.before == nil {
		g.before, g.at = s.Response.Clone(), s.Elapsed
		return
	}
	if s.Elapsed-g.at < time.Second {
		return
	}
	const enough = 100
	recent := s.Response.Clone()
	if err := recent.Sub(g.before); err != nil || recent.Count() < enough {
		return // the snapshot began anew, or a second is too short
	}
	g.before, g.at = s.Response.Clone(), s.Elapsed
	p99 := time.Duration(recent.Quantile(0.99))
	switch {
	case g.bound == 0:
		g.bound = max(leastBound, worse*p99)
	case p99 > g.bound:
		g.stop(&tooSlow{p99, g.bound})
	}
}

// drive loads the URL, if there is one, until the context is done. It returns
// once the load is under way; what ended says why it ended before.
func (c *whatifCmd) drive(ctx context.Context, stop context.CancelCauseFunc) (ended <-chan error, err error) {
	done := make(chan error, 1)
	if c.Load == "" {
		done <- nil
		return done, nil
	}
	targets := []load.Target{{URL: c.Load}}
	if _, err := load.Run(ctx, load.Options{Targets: targets, Connections: 1, Requests: 1, Timeout: 10 * time.Second}); err != nil {
		return nil, fmt.Errorf("loading %s: %w", c.Load, err)
	}
	begun := make(chan struct{})
	o := load.Options{
		Targets: targets, Connections: c.Conns,
		WarmUp: time.Second, Duration: c.For + c.Layers + time.Minute,
		Mark: func(begin bool) {
			if begin {
				close(begun)
			}
		},
	}
	if c.Rate > 0 {
		o.Schedule = pace.Constant(c.Rate)
	}
	g := &guard{bound: c.AbortP99, stop: stop}
	o.Progress = g.look
	go func() {
		res, err := load.Run(ctx, o)
		if err == nil && ctx.Err() == nil && res.Counts.Answered() == 0 {
			err = errors.New("no request was answered")
		}
		if err != nil {
			err = fmt.Errorf("loading %s: %w", c.Load, err)
		}
		done <- err
	}()
	select {
	case <-begun:
		return done, nil
	case err := <-done:
		return nil, errors.Join(err, errors.New("the load ended before it began"))
	}
}
