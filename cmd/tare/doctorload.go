package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/load"
)

// settle is how long a load goes on before anything is looked at: pools fill and
// connections open meanwhile.
const settle = 500 * time.Millisecond

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
	answered := float64(p.res.Counts.Answered())
	if answered == 0 || p.res.Elapsed == 0 {
		return errors.New("loading: no request was answered")
	}
	rate := answered / p.res.Elapsed.Seconds()
	g.Window.Requests = rate * g.Window.Duration.Seconds()
	g.Traced.Requests = rate * g.Traced.Duration.Seconds()
	g.Latency = time.Duration(p.res.Service.Mean())
	g.Busy = int(p.res.MeanFlight + 0.5)
	if bad := p.res.Counts.Scheduled - p.res.Counts.Answered(); bad > p.res.Counts.Scheduled/100 {
		g.lack(doctor.BusyService, fmt.Errorf("%d of %d requests were not answered", bad, p.res.Counts.Scheduled))
	}
	return nil
}
