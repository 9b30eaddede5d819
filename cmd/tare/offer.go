package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/load"
)

// offered is a load that runs beside a measurement.
type offered struct {
	done chan error
	res  *load.Result
}

// offer starts a load of one target, after it has answered once, and waits until
// the measured part is under way. Of o, Mark is set here.
func offer(ctx context.Context, o load.Options) (*offered, error) {
	url := o.Targets[0].URL
	if _, err := load.Run(ctx, load.Options{Targets: o.Targets, Connections: 1, Requests: 1, Timeout: 10 * time.Second}); err != nil {
		return nil, fmt.Errorf("loading %s: %w", url, err)
	}
	begun := make(chan struct{})
	o.Mark = func(begin bool) {
		if begin {
			close(begun)
		}
	}
	under := &offered{done: make(chan error, 1)}
	go func() {
		var err error
		under.res, err = load.Run(ctx, o)
		under.done <- err
	}()
	select {
	case <-begun:
		return under, nil
	case err := <-under.done:
		if err == nil {
			err = errors.New("it ended before it began")
		}
		return nil, fmt.Errorf("loading %s: %w", url, err)
	}
}

// end ends the load by what stops it, and says what was wrong with the answers. It
// is an error if there were none.
func (u *offered) end(stop func()) (warnings []error, err error) {
	stop()
	if err := <-u.done; err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	if u.res.Counts.Answered() == 0 || u.res.Elapsed == 0 {
		return nil, errors.New("loading: no request was answered")
	}
	return amiss(&u.res.Counts), nil
}

// amiss says what was wrong with the answers.
func amiss(c *load.Counts) (warnings []error) {
	if bad := c.Scheduled - c.Answered(); bad > 0 {
		warnings = append(warnings, fmt.Errorf("%d of %d requests were not answered", bad, c.Scheduled))
	}
	if odd := c.Status[4] + c.Status[5]; odd > 0 {
		warnings = append(warnings, fmt.Errorf("%d of %d answers were errors, status 4xx or 5xx: is that the URL?", odd, c.Answered()))
	}
	return warnings
}

// texts are what errors say.
func texts(errs []error) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
