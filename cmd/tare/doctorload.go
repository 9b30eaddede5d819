package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/load"
)

// settle is how long a load goes on before anything is looked at: pools fill and
// connections open meanwhile.
const settle = 500 * time.Millisecond

// slice is how finely the load's answers are counted over time: requests go
// slower while a trace is recorded.
const slice = 50 * time.Millisecond

// pressure is the load under which a service is looked at.
type pressure struct {
	done chan error
	res  *load.Result
}

// press starts the load, and waits until it is under way; nil if none is asked
// for.
func (c *doctorCmd) press(ctx context.Context) (*pressure, error) {
	if c.Load == "" {
		return nil, nil
	}
	target := load.Target{URL: c.Load}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return nil, asked("such as -H 'Accept: text/html'", fmt.Errorf("--header %q has no colon", h))
		}
		target.Header = append(target.Header, load.Field{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	targets := []load.Target{target}
	if _, err := load.Run(ctx, load.Options{Targets: targets, Connections: 1, Requests: 1, Timeout: 10 * time.Second}); err != nil {
		return nil, fmt.Errorf("loading %s: %w", c.Load, err)
	}
	begun := make(chan struct{})
	p := &pressure{done: make(chan error, 1)}
	go func() {
		var err error
		p.res, err = load.Run(ctx, load.Options{
			Targets: targets, Connections: c.Conns, WarmUp: settle,
			Duration: c.For + time.Hour, // ended when the evidence is there
			Slice:    slice,
			Mark: func(begin bool) {
				if begin {
					close(begun)
				}
			},
		})
		p.done <- err
	}()
	select {
	case <-begun:
		return p, nil
	case err := <-p.done:
		if err == nil {
			err = errors.New("it ended before it began")
		}
		return nil, fmt.Errorf("loading %s: %w", c.Load, err)
	}
}

// end ends the load and says how many requests fell into each part's time.
func (p *pressure) end(cancel func(), g *gathering) error {
	cancel()
	if err := <-p.done; err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	if p.res.Counts.Answered() == 0 || p.res.Elapsed == 0 {
		return errors.New("loading: no request was answered")
	}
	g.Window.Requests = p.within(g.profiledFrom, g.Window.Duration)
	g.Traced.Requests = p.within(g.tracedFrom, g.Traced.Duration)
	g.Latency = time.Duration(p.res.Service.Mean())
	g.Busy = int(p.res.MeanFlight + 0.5)
	if bad := p.res.Counts.Scheduled - p.res.Counts.Answered(); bad > 0 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("%d of %d requests were not answered", bad, p.res.Counts.Scheduled))
	}
	if odd := p.res.Counts.Status[4] + p.res.Counts.Status[5]; odd > 0 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("%d of %d answers were errors, status 4xx or 5xx: is that the URL?", odd, p.res.Counts.Answered()))
	}
	return nil
}

// within is how many requests were answered in a part of the load's time.
func (p *pressure) within(from time.Time, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	begin := from.Sub(p.res.Started)
	end := begin + d
	var n float64
	for _, s := range p.res.Series {
		overlap := min(end, s.At+slice) - max(begin, s.At)
		if overlap > 0 {
			n += float64(s.Answered) * overlap.Seconds() / slice.Seconds()
		}
	}
	return n
}
