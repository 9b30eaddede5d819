package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// loading is the load that a verb's flags ask for beside a measurement.
type loading struct {
	URL         string   // "" = none
	Header      []string // as --header has them
	Connections int
	Rate        float64       // 0 = as fast as the connections go
	For         time.Duration // of the measurement
}

// options are the load's. It goes on for longer than the measurement, which ends it.
func (l loading) options() (load.Options, error) {
	header, err := cli.HeaderFields("--header", l.Header)
	o := load.Options{
		Targets:     []load.Target{{URL: l.URL, Header: header}},
		Connections: l.Connections,
		WarmUp:      time.Second,
		Duration:    l.For + time.Minute,
		Slice:       slice,
	}
	if l.Rate > 0 {
		o.Schedule = pace.Constant(l.Rate)
	}
	return o, err
}

// offer starts the load; nil if there is none.
func (l loading) offer(ctx context.Context) (*offered, error) {
	if l.URL == "" {
		return nil, nil
	}
	o, err := l.options()
	if err != nil {
		return nil, err
	}
	return offer(ctx, o)
}

// slice is how finely the load's answers are counted over time: requests go
// slower while a trace is recorded.
const slice = 50 * time.Millisecond

// offered is a load that runs beside a measurement.
type offered struct {
	done chan error
	res  *load.Result
}

// offer starts a load of one target, after it has answered once, and waits until
// the measured part is under way. Of o, Mark is set here.
func offer(ctx context.Context, o load.Options) (*offered, error) {
	url := load.Shown(o.Targets[0].URL)
	_, err := load.Run(ctx, load.Options{Targets: o.Targets, Connections: 1, Requests: 1, Timeout: 10 * time.Second})
	if err == nil {
		err = ctx.Err() // an interrupted load is none by itself
	}
	if err != nil {
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
			err = cmp.Or(ctx.Err(), errors.New("it ended before it began"))
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

// within is how many requests were answered in a part of the load's time.
func (u *offered) within(from time.Time, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	begin := from.Sub(u.res.Started)
	end := begin + d
	var n float64
	for _, s := range u.res.Series {
		overlap := min(end, s.At+slice) - max(begin, s.At)
		if overlap > 0 {
			n += float64(s.Answered) * overlap.Seconds() / slice.Seconds()
		}
	}
	return n
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
