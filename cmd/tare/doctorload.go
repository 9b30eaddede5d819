package main

import (
	"context"
	"time"

	"github.com/tarehq/tare/cost/doctor"
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
	o, err := loading{URL: c.Load, Header: c.Header, Connections: c.Conns, For: c.For}.options()
	if err != nil {
		return nil, err
	}
	o.WarmUp = settle
	o.Duration = c.For + time.Hour // ended when the evidence is there
	return offer(ctx, o)
}

// tell ends the load and says how many requests fell into each part's time. That none
// was answered is no reason to throw away what shows why.
func (u *offered) tell(stop func(), g *gathering) {
	warnings, err := u.end(stop)
	if err != nil {
		g.lack(doctor.Traffic, err)
		g.Warnings = append(g.Warnings, err.Error())
		return
	}
	g.Window.Requests = u.within(g.profiledFrom, g.Window.Duration)
	g.Traced.Requests = u.within(g.tracedFrom, g.Traced.Duration)
	g.Latency = time.Duration(u.res.Service.Mean())
	g.Busy = int(u.res.MeanFlight + 0.5)
	g.Warnings = append(g.Warnings, texts(warnings)...)
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
