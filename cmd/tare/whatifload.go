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
type tooSlow struct {
	p99, bound time.Duration
	stuck      uint64        // if not 0: of so many requests, none of which was answered
	over       time.Duration // for so long
}

func (e *tooSlow) Error() string {
	if e.stuck > 0 {
		return fmt.Sprintf("%d of the requests in flight had no answer for %s, more than %s", e.stuck, unit.Format(float64(e.over), unit.Nanoseconds), unit.Format(float64(e.bound), unit.Nanoseconds))
	}
	return fmt.Sprintf("p99 of the last second is %s, more than %s", unit.Format(float64(e.p99), unit.Nanoseconds), unit.Format(float64(e.bound), unit.Nanoseconds))
}

// guard ends a run when the p99 of about a second of answers exceeds a bound.
type guard struct {
	bound  time.Duration // 0: not known before the first second is over
	stop   context.CancelCauseFunc
	before *hist.Hist
	at     time.Duration
	flight uint64 // requests in flight then
	ended  uint64 // requests that had ended
}

// What response times may come to where nobody says: so many times the p99 of the
// first second, when nothing is slowed down yet, but no less than a time that any
// service has now and then.
const (
	worse      = 10
	leastBound = 100 * time.Millisecond
)

func (g *guard) look(s load.Snapshot) {
	ended := s.Counts.Answered() + s.Counts.Failed() + s.Counts.Dropped
	if s.Elapsed < 0 {
		ended = 0 // the warm-up's: they do not count on
	}
	if g.before == nil {
		g.since(s, ended)
		return
	}
	if s.Elapsed-g.at < time.Second {
		return
	}
	const enough = 100
	recent := s.Response.Clone()
	if err := recent.Sub(g.before); err != nil {
		return // the snapshot began anew
	}
	if recent.Count() < enough {
		// Of a service that stalls there are few answers, or none. Of the requests
		// that were in flight those without an answer have waited all the while.
		if over, now := s.Elapsed-g.at, ended-g.ended; g.bound > 0 && over > g.bound && 100*now < 99*g.flight {
			g.stop(&tooSlow{bound: g.bound, stuck: g.flight - now, over: over})
		}
		return // a second is too short
	}
	g.since(s, ended)
	p99 := time.Duration(recent.Quantile(0.99))
	switch {
	case g.bound == 0:
		g.bound = max(leastBound, worse*p99)
	case p99 > g.bound:
		g.stop(&tooSlow{p99: p99, bound: g.bound})
	}
}

// since has the next look begin at s.
func (g *guard) since(s load.Snapshot, ended uint64) {
	g.before, g.at, g.flight, g.ended = s.Response.Clone(), s.Elapsed, uint64(max(0, s.Flight)), ended
}

// drive loads the URL, if there is one, until the context is done. It returns
// once the load is under way; what ended says why it ended before.
func (c *whatifCmd) drive(ctx context.Context, stop context.CancelCauseFunc) (ended <-chan error, err error) {
	done := make(chan error, 1)
	if c.Load == "" {
		done <- nil
		return done, nil
	}
	header, err := fields("--header", c.Header)
	if err != nil {
		return nil, err
	}
	targets := []load.Target{{URL: c.Load, Header: header}}
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
