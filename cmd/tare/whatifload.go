package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// ofLoad returns what a load has seen. What ended during its warm-up does not count
// on.
func ofLoad(s load.Snapshot) answers {
	a := answers{at: s.Elapsed, times: s.Response, flight: uint64(max(0, s.Flight))}
	if s.Elapsed >= 0 {
		a.ended = s.Counts.Answered() + s.Counts.Failed() + s.Counts.Dropped
	}
	return a
}

// driven is what came of a load.
type driven struct {
	err      error // why it ended before its time
	warnings []error
}

// drive loads the URL, and has the guard look, until the context is done. It returns
// once the load is under way; ended tells what came of it.
func (c *whatifCmd) drive(ctx context.Context, g *guard) (ended <-chan driven, err error) {
	done := make(chan driven, 1)
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
	o.Progress = func(s load.Snapshot) { g.look(ofLoad(s)) }
	go func() {
		res, err := load.Run(ctx, o)
		if err == nil && ctx.Err() == nil && res.Counts.Answered() == 0 {
			err = errors.New("no request was answered")
		}
		if err != nil {
			done <- driven{err: fmt.Errorf("loading %s: %w", c.Load, err)}
			return
		}
		done <- driven{warnings: amiss(&res.Counts)}
	}()
	select {
	case <-begun:
		return done, nil
	case early := <-done:
		return nil, errors.Join(early.err, errors.New("the load ended before it began"))
	}
}
