package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tarehq/tare/load"
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
	o, err := loading{c.Load, c.Header, c.Conns, c.Rate, c.For + c.Layers}.options()
	if err != nil {
		return nil, err
	}
	o.Progress = func(s load.Snapshot) { g.look(ofLoad(s)) }
	under, err := offer(ctx, o)
	if err != nil {
		return nil, err
	}
	done := make(chan driven, 1)
	go func() {
		err := <-under.done
		if err == nil && ctx.Err() == nil && under.res.Counts.Answered() == 0 {
			err = errors.New("no request was answered")
		}
		if err != nil {
			done <- driven{err: fmt.Errorf("loading %s: %w", load.Shown(c.Load), err)}
			return
		}
		done <- driven{warnings: amiss(&under.res.Counts)}
	}()
	return done, nil
}
