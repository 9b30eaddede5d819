package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// whatifCmd tells what a microsecond in one owner costs the whole request.
type whatifCmd struct {
	PID      int           `name:"pid" required:"" help:"The process: a service written in Go." placeholder:"N"`
	Owner    string        `required:"" help:"Whom to slow down, as tare cost names it: package.Function, or file.go:line of its function." placeholder:"NAME"`
	Slow     time.Duration `default:"20us" help:"By how much to slow down each of its calls; at most 1ms."`
	For      time.Duration `default:"30s" help:"How long, in all; at most 10m."`
	Window   time.Duration `default:"500ms" help:"How long it is slowed down, or left alone, at a time."`
	Layers   time.Duration `default:"8s" help:"How long to sample afterwards, half of it slowed down, to say who spends the difference (0: not at all)."`
	Load     string        `help:"URL to load meanwhile." placeholder:"URL"`
	Conns    int           `name:"connections" short:"c" default:"64" help:"With --load: connections kept busy; with --rate the most that may be open."`
	Rate     float64       `short:"r" help:"With --load: requests a second, whatever the answers do (0: as fast as the connections go)." placeholder:"N"`
	AbortP99 time.Duration `name:"abort-p99" help:"With --load: stop as soon as the 99th percentile of a second's response times is above this." placeholder:"TIME"`
	Seed     uint64        `default:"1" help:"Of the order of windows."`
	JSON     bool          `name:"json" help:"Print JSON."`
}

// Help says what is done to the process, and what comes of it.
func (c *whatifCmd) Help() string {
	return `Examples:

  tare whatif --pid 4711 --owner mw.Auth --slow 20us
  tare whatif --pid 4711 --owner mw.go:34 --slow 50us --load http://localhost:8080/

Own time is what an owner spends; it is not what removing it would save, for a
slower server changes how others run: its clients sleep and have to be woken, its
collector runs at other times. So the owner is slowed down from outside, by a
probe that spins, in windows that alternate in random order with windows without,
and the CPU time of whole requests is compared. That times the owner's own time
is what removing it would save.

This slows a running service down, which is why it has to be asked for by name.
The probe takes no more than --slow a call, stops by itself when a window is over,
and goes when this command ends, in whatever way.`
}

func (c *whatifCmd) check() error {
	switch {
	case c.PID < 1:
		return asked("", fmt.Errorf("--pid %d: no process", c.PID))
	case c.Slow < 100*time.Nanosecond || c.Slow > probe.Slowest:
		return asked("", fmt.Errorf("--slow %s: at least 100ns, at most %s", c.Slow, probe.Slowest))
	case c.Window < 50*time.Millisecond || c.Window > 10*time.Second:
		return asked("", fmt.Errorf("--window %s: at least 50ms, at most 10s", c.Window))
	case c.For < leastPairs*2*c.Window || c.For > 10*time.Minute:
		return asked("", fmt.Errorf("--for %s: at least %s, which is %d pairs of windows, at most 10m", c.For, leastPairs*2*c.Window, leastPairs))
	case c.Layers < 0 || c.Layers > 10*time.Minute || c.Layers > 0 && c.Layers < time.Second:
		return asked("", fmt.Errorf("--layers %s: 0, or at least 1s, at most 10m", c.Layers))
	case c.Load == "" && (c.Rate != 0 || c.AbortP99 != 0):
		return asked("name the URL to load: --load URL", errors.New("--rate and --abort-p99 do nothing without --load"))
	case c.Rate < 0 || c.Conns < 1 || c.AbortP99 < 0:
		return asked("", errors.New("--rate, --connections and --abort-p99 are no less than 0, 1 and 0"))
	}
	return nil
}

// Run slows the owner down, on and off, and shows what comes of it.
func (c *whatifCmd) Run(ctx context.Context, t *terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	target, err := probe.Open(c.PID)
	if err != nil {
		return unprobed(err)
	}
	defer target.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended, err := c.drive(ctx, cancel)
	if err != nil {
		return err
	}
	res, err := c.measure(ctx, t, target)
	cause := context.Cause(ctx)
	interrupted := ctx.Err() != nil
	cancel(nil)
	loadErr := <-ended
	var slow *tooSlow
	if errors.As(cause, &slow) {
		return &failure{status: exitThreshold, err: fmt.Errorf("stopped, and the probe taken away: %w", slow)}
	}
	if err != nil && interrupted {
		return fmt.Errorf("nothing was compared yet: %w", err)
	}
	if err != nil {
		return unprobed(err)
	}
	show := res.text
	if c.JSON {
		show = func(t *terminal) error { return t.json(res) }
	}
	switch err := show(t); {
	case err != nil:
		return err
	case interrupted:
		return &failure{status: exitInterrupted}
	case res.cut != nil:
		return unprobed(res.cut)
	}
	return loadErr
}

// measure finds the owner and compares windows with and without the slow-down.
func (c *whatifCmd) measure(ctx context.Context, t *terminal, target *probe.Target) (*whatif, error) {
	owner, err := c.find(ctx, target)
	if err != nil {
		return nil, err
	}
	own, ownErr := c.self(ctx, target)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if ownErr == nil && len(uncalled([]probe.Watched{owner}, own.Walls)) > 0 {
		return nil, neverCalled(owner.Owner, own.Requests, callers(ctx, target))
	}
	brake, err := target.NewBrake(owner)
	if err != nil {
		return nil, err
	}
	defer brake.Close()
	fmt.Fprintf(t.err, "slowing %s (%s) of process %d down by %s a call, half of the next %s\n", owner.Owner.Name, owner.Owner.Where(), c.PID, c.Slow, c.For+c.Layers)
	pairs, cut := c.alternate(ctx, brake)
	if len(pairs) == 0 {
		return nil, cut
	}
	least := leastPairs
	if cut != nil || ctx.Err() != nil {
		least = 1 // without an interval
	}
	res, err := newWhatif(pairs, least)
	if err != nil {
		return nil, cmp.Or(cut, fmt.Errorf("slowing %s down: %w", owner.Owner.Name, err))
	}
	res.cut = cut
	res.PID, res.Owner, res.Where, res.Slow = c.PID, owner.Owner.Name, owner.Owner.Where(), float64(c.Slow)
	if c.Layers > 0 && cut == nil && ctx.Err() == nil {
		off, on, err := c.layers(ctx, brake)
		res.sampled(off, on, err)
	}
	res.own(own, ownErr, owner.Owner)
	if !brake.Counted {
		res.Warnings = append(res.Warnings, "where requests begin is not known in this program: each call of "+res.Owner+" is taken for a request")
	}
	switch {
	case ctx.Err() != nil:
		res.Warnings = append(res.Warnings, "interrupted: the windows until then are shown")
	case cut != nil:
		res.Warnings = append(res.Warnings, fmt.Sprintf("%v: the windows until then are shown", cut))
		return res, nil // of probes on what is gone there is nothing more to say
	}
	return res, brake.Close()
}

// glance is how long requests are looked at to see who handles them.
const glance = 400 * time.Millisecond

// find returns the one owner that goes by the name.
func (c *whatifCmd) find(ctx context.Context, target *probe.Target) (probe.Watched, error) {
	owners, err := target.Owners(ctx, []string{c.Owner}, glance)
	if err != nil {
		return probe.Watched{}, err
	}
	var named []probe.Watched
	for _, o := range owners {
		if !o.Aside {
			named = append(named, o)
		}
	}
	if len(named) != 1 {
		return probe.Watched{}, ambiguous(c.Owner, named)
	}
	return named[0], nil
}

// ambiguous says who goes by one name. As long as none of them was seen to be
// called, a constructor cannot be told from what it returns.
func ambiguous(name string, owners []probe.Watched) error {
	var list []string
	met := false
	for _, o := range owners {
		list = append(list, o.Owner.Name+" ("+o.Owner.Where()+")")
		met = met || o.Met
	}
	if met {
		return asked("name one by file.go:line", fmt.Errorf("--owner %s is %d owners: %s", name, len(owners), strings.Join(list, ", ")))
	}
	return &failure{status: exitCould, hint: "load the service, so that it is seen which of them handles requests; or name that one by file.go:line",
		err: fmt.Errorf("no request that %s handles was seen within %s, and %d functions go by that name: %s", name, glance, len(owners), strings.Join(list, ", "))}
}

// self watches the owner's calls by the clock for two seconds.
func (c *whatifCmd) self(ctx context.Context, target *probe.Target) (*probe.Measurement, error) {
	price, err := probe.Calibrate(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := target.Owners(ctx, []string{c.Owner}, glance)
	if err != nil {
		return nil, err
	}
	w, err := target.NewWatch(owners, price)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := w.Look(ctx, glance); err != nil {
		return nil, err
	}
	return w.Run(ctx, probe.Options{For: 2 * time.Second})
}

// pair is two windows, close together and in random order.
type pair struct{ off, on probe.Reading }

// alternate measures pairs of windows until the time is over, or the context is
// done, or the process cannot be read any more. What was measured is returned
// with the reason why it is not all.
func (c *whatifCmd) alternate(ctx context.Context, brake *probe.Brake) ([]pair, error) {
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	pairs := make([]pair, 0, c.For/(2*c.Window))
	for range cap(pairs) {
		var p pair
		for _, i := range rng.Perm(2) {
			r, err := c.one(ctx, brake, window{on: i == 1, d: c.Window, most: 2 * c.Window})
			if err != nil {
				return pairs, err
			}
			if i == 1 {
				p.on = r
			} else {
				p.off = r
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, brake.Off()
}

// window is a time during which the owner is slowed down, or not.
type window struct {
	on   bool
	d    time.Duration
	most time.Duration // for which the probe may go on if nobody turns it off
}

// one measures one window. Its first tenth is left out: requests that began
// before it are still under way.
func (c *whatifCmd) one(ctx context.Context, brake *probe.Brake, w window) (probe.Reading, error) {
	var err error
	if w.on {
		err = brake.On(c.Slow, w.most)
	} else {
		err = brake.Off()
	}
	if err != nil {
		return probe.Reading{}, err
	}
	if err := pause(ctx, w.d/10); err != nil {
		return probe.Reading{}, err
	}
	before, err := brake.Read()
	if err != nil {
		return probe.Reading{}, err
	}
	if err := pause(ctx, w.d-w.d/10); err != nil {
		return probe.Reading{}, err
	}
	after, err := brake.Read()
	if err != nil {
		return probe.Reading{}, err
	}
	return after.Since(before), nil
}

// pause waits, or says why not.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// tooSlow ends a run whose response times got out of bounds.
type tooSlow struct{ p99, bound time.Duration }

func (e *tooSlow) Error() string {
	return fmt.Sprintf("p99 of the last second is %s, more than %s", unit.Format(float64(e.p99), unit.Nanoseconds), e.bound)
}

// guard ends a run when the p99 of about a second of answers exceeds a bound.
type guard struct {
	bound  time.Duration
	stop   context.CancelCauseFunc
	before *hist.Hist
	at     time.Duration
}

func (g *guard) look(s load.Snapshot) {
	if g.before == nil {
		g.before, g.at = s.Response.Clone(), s.Elapsed
		return
	}
	if s.Elapsed-g.at < time.Second {
		return
	}
	recent := s.Response.Clone()
	if err := recent.Sub(g.before); err != nil {
		return // the snapshot began anew
	}
	g.before, g.at = s.Response.Clone(), s.Elapsed
	const enough = 100
	if p99 := time.Duration(recent.Quantile(0.99)); recent.Count() >= enough && p99 > g.bound {
		g.stop(&tooSlow{p99, g.bound})
	}
}

// drive loads the URL, if there is one, until the context is done. It returns
// once the load is under way; what ended says why it ended before.
func (c *whatifCmd) drive(ctx context.Context, stop context.CancelCauseFunc) (ended <-chan error, err error) {
	done := make(chan error, 1)
	if c.Load == "" {
		done <- nil
		return done, nil
	}
	targets := []load.Target{{URL: c.Load}}
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
	if c.AbortP99 > 0 {
		g := &guard{bound: c.AbortP99, stop: stop}
		o.Progress = g.look
	}
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
