package main

import (
	"context"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/doctor"
)

// settle is how long a load goes on before anything is looked at: pools fill and
// connections open meanwhile.
const settle = 500 * time.Millisecond

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
	g.Warnings = append(g.Warnings, cli.Texts(warnings)...)
}
