package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/stats/unit"
)

// whatifCmd tells what a microsecond in one owner costs the whole request.
type whatifCmd struct {
	PID      int           `name:"pid" required:"" help:"The process: a service written in Go." placeholder:"N"`
	Owner    string        `required:"" help:"Whom to slow down, as tare cost names it: package.Function, or file.go:line of its function." placeholder:"NAME"`
	Slow     time.Duration `default:"20us" help:"By how much to slow down each of its calls; at most 1ms."`
	For      time.Duration `default:"30s" help:"How long all windows take; at most 10m. Timing its calls, 2s, and --layers come on top."`
	Window   time.Duration `default:"500ms" help:"How long it is slowed down, or left alone, at a time."`
	Layers   time.Duration `default:"8s" help:"How long to sample afterwards, half of it slowed down, to say who spends the difference (0: not at all)."`
	Load     string        `help:"URL to load meanwhile." placeholder:"URL"`
	Conns    int           `name:"connections" short:"c" default:"64" help:"With --load: connections kept busy; with --rate the most that may be open."`
	Rate     float64       `short:"r" help:"With --load: requests a second, whatever the answers do (0: as fast as the connections go)." placeholder:"N"`
	Header   []string      `short:"H" sep:"none" help:"With --load: a header field to send; repeatable." placeholder:"NAME: VALUE"`
	AbortP99 time.Duration `name:"abort-p99" help:"Stop as soon as the p99 of a second's response times is above this (0: ten times that of the first second, at least 100ms)." placeholder:"TIME"`
	Most     cli.Percent   `name:"max-overhead" default:"5%" help:"The most that timing its calls beforehand may cost the process, of the CPU it uses."`
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
		return cli.Usage("", fmt.Errorf("--pid %d: no process", c.PID))
	case c.Slow < 100*time.Nanosecond || c.Slow > probe.Slowest:
		return cli.Usage("", fmt.Errorf("--slow %s: at least 100ns, at most %s", c.Slow, probe.Slowest))
	case c.Window < 50*time.Millisecond || c.Window > 10*time.Second:
		return cli.Usage("", fmt.Errorf("--window %s: at least 50ms, at most 10s", c.Window))
	case c.For < leastPairs*2*c.Window || c.For > 10*time.Minute:
		return cli.Usage("", fmt.Errorf("--for %s: at least %s, which is %d pairs of windows, at most 10m", c.For, leastPairs*2*c.Window, leastPairs))
	case c.Layers < 0 || c.Layers > 10*time.Minute || c.Layers > 0 && c.Layers < time.Second:
		return cli.Usage("", fmt.Errorf("--layers %s: 0, or at least 1s, at most 10m", c.Layers))
	case c.Load == "" && (c.Rate != 0 || len(c.Header) > 0):
		return cli.Usage("name the URL to load: --load URL", errors.New("--rate and --header do nothing without --load"))
	case c.Most <= 0 || c.Most > 100:
		return cli.Usage("such as --max-overhead 5%", fmt.Errorf("--max-overhead %v%%: more than 0 %%, at most 100 %%", float64(c.Most)))
	case c.Rate < 0 || c.Conns < 1 || c.AbortP99 < 0:
		return cli.Usage("", errors.New("--rate, --connections and --abort-p99 are no less than 0, 1 and 0"))
	}
	_, err := cli.HeaderFields("--header", c.Header)
	return err
}

// Run slows the owner down, on and off, and shows what comes of it.
func (c *whatifCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if err := cmp.Or(c.check(), t.RefuseFlags(c.Load == "", "without --load", "connections")); err != nil {
		return err
	}
	target, err := probe.Open(c.PID)
	if err != nil {
		return unprobed(err)
	}
	defer target.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := c.watch(ctx, cancel)
	if err != nil {
		return err
	}
	res, err := c.measure(ctx, t, target, w)
	cause := context.Cause(ctx)
	interrupted := ctx.Err() != nil
	cancel(nil)
	came := w.end()
	var stopped error
	if f := new(cli.Failure); errors.As(cause, &f) {
		stopped = &cli.Failure{Status: f.Status, Err: fmt.Errorf("stopped, and the probe taken away: %w", f.Err)}
	}
	switch {
	case err != nil && stopped != nil:
		return stopped
	case err != nil && interrupted:
		return fmt.Errorf("nothing was compared yet: %w", err)
	case err != nil:
		return unprobed(err)
	}
	res.Warnings = append(res.Warnings, cli.Texts(came.warnings)...)
	show := res.text
	if c.JSON {
		show = func(t *cli.Terminal) error { return t.JSON(res) }
	}
	switch err := show(t); {
	case err != nil:
		return err
	case stopped != nil:
		return stopped
	case interrupted:
		return &cli.Failure{Status: cli.ExitInterrupted}
	case res.cut != nil:
		return unprobed(res.cut)
	}
	return came.err
}

// measure finds the owner and compares windows with and without the slow-down.
func (c *whatifCmd) measure(ctx context.Context, t *cli.Terminal, target *probe.Target, w *sentry) (*whatif, error) {
	owner, err := c.find(ctx, target)
	if err != nil {
		return nil, err
	}
	own, ownErr := c.self(ctx, t, target)
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
	brake.Counted = brake.Counted && requestsSeen(own)
	watched, err := w.says(c.AbortP99)
	if err != nil {
		return nil, err
	}
	c.announce(t, owner.Owner, own, watched)
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
	case errors.As(context.Cause(ctx), new(*cli.Failure)):
		res.Warnings = append(res.Warnings, fmt.Sprintf("stopped, for %v: the windows until then are shown", context.Cause(ctx)))
	case ctx.Err() != nil:
		res.Warnings = append(res.Warnings, "interrupted: the windows until then are shown")
	case cut != nil:
		res.Warnings = append(res.Warnings, fmt.Sprintf("%v: the windows until then are shown", cut))
		return res, nil // of probes on what is gone there is nothing more to say
	}
	return res, brake.Close()
}

// requestsSeen reports whether requests were counted where they begin, as far as timing the
// owner's calls has shown; own may be nil. A program may have the function and begin
// other requests elsewhere, as where net/http serves profiles beside another engine.
func requestsSeen(own *probe.Measurement) bool {
	called := func(w cost.Wall) bool { return w.Calls > 0 }
	return own == nil || own.Requests > 0 || !slices.ContainsFunc(own.Walls, called)
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
		return cli.Usage("name one by file.go:line", fmt.Errorf("--owner %s is %d owners: %s", name, len(owners), strings.Join(list, ", ")))
	}
	return &cli.Failure{Status: cli.ExitFailed, Hint: "load the service, so that it is seen which of them handles requests; or name that one by file.go:line",
		Err: fmt.Errorf("no request that %s handles was seen within %s, and %d functions go by that name: %s", name, glance, len(owners), strings.Join(list, ", "))}
}

// self times the owner's calls by the clock for a while, within a budget that is
// told before it is spent.
func (c *whatifCmd) self(ctx context.Context, t *cli.Terminal, target *probe.Target) (*probe.Measurement, error) {
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
	f, err := w.Look(ctx, glance)
	if err != nil {
		return nil, err
	}
	o, err := c.clock(f)
	if err != nil {
		return nil, err
	}
	t.Note("timing its calls for %s first: a hit costs %s here, and %s hits a second are %s of the process's CPU while they are timed, which is %s of the time",
		o.For, unit.Format(float64(price.Hit), unit.Nanoseconds), unit.Number(math.Round(f.Hits)), unit.Format(f.Share, unit.Share), unit.Format(o.Share, unit.Share))
	return w.Run(ctx, o)
}

// clock returns how calls can be timed within the budget, given what timing all of
// them would cost.
func (c *whatifCmd) clock(f *probe.Forecast) (probe.Options, error) {
	const d = 2 * time.Second
	most, share := float64(c.Most)/100, 1.0
	if f.Share > most {
		share = most / f.Share
	}
	if share < leastShare {
		return probe.Options{}, fmt.Errorf("timing its calls for a tenth of the time would take %s of the process's CPU, more than %s (--max-overhead)",
			unit.Format(f.Share*leastShare, unit.Share), unit.Format(most, unit.Share))
	}
	// Two windows, or one that is long enough to see calls end.
	return probe.Options{For: d, Share: share, Window: max(d/10, time.Duration(share*float64(d/2)))}, nil
}

// announce says what is going to be done, what that takes, and who watches.
func (c *whatifCmd) announce(t *cli.Terminal, o cost.Owner, own *probe.Measurement, watched string) {
	text := fmt.Sprintf("slowing %s (%s) of process %d down by %s a call, half of the next %s", o.Name, o.Where(), c.PID, c.Slow, c.For+c.Layers)
	if own != nil {
		for _, w := range own.Walls {
			if w.Owner == o && w.Calls > 0 {
				rate := w.Calls / own.Attached.Seconds()
				text += fmt.Sprintf("; at the %s calls a second there are, that takes %s of a CPU then", unit.Number(math.Round(rate)), unit.Format(rate*c.Slow.Seconds(), unit.Share))
			}
		}
	}
	t.Note("%s", text)
	if watched != "" {
		t.Note("%s", watched)
	}
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
