package main

import (
	"context"
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

// press starts the load, and waits until it is under way; nil if none is asked
// for.
func (c *doctorCmd) press(ctx context.Context) (*offered, error) {
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
	return offer(ctx, load.Options{
		Targets: []load.Target{target}, Connections: c.Conns, WarmUp: settle,
		Duration: c.For + time.Hour, // ended when the evidence is there
		Slice:    slice,
	})
}

// tell ends the load and says how many requests fell into each part's time.
func (u *offered) tell(stop func(), g *gathering) error {
	warnings, err := u.end(stop)
	if err != nil {
		return err
	}
	g.Window.Requests = u.within(g.profiledFrom, g.Window.Duration)
	g.Traced.Requests = u.within(g.tracedFrom, g.Traced.Duration)
	g.Latency = time.Duration(u.res.Service.Mean())
	g.Busy = int(u.res.MeanFlight + 0.5)
	g.Warnings = append(g.Warnings, texts(warnings)...)
	return nil
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
