// Package whatifverb slows one owner down, to measure what its time costs: the verb
// whatif.
package whatifverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/whatif"
)

// Command measures what a microsecond in one owner costs the whole request.
type Command struct {
	What        string `arg:"" optional:"" name:"url|pid" help:"A Go service on this machine: its process ID or URL."`
	cli.Process `group:"Service:"`
	Owner       string        `required:"" help:"Owner to slow down, as in tare cost: package.Function or file.go:line." placeholder:"NAME"`
	Slow        time.Duration `default:"20us" help:"Delay of each of its calls; at most 1ms."`
	For         time.Duration `default:"30s" help:"Length of all windows; at most 10m. Timing its calls (2s) and --layers take extra time."`
	Window      time.Duration `default:"500ms" help:"Length of one window, slow or normal."`
	Layers      time.Duration `default:"8s" help:"Time to sample afterwards, half of it slow, to show which owners spend the difference (0: none)."`
	cli.Load    `group:"Load:"`
	AbortP99    time.Duration `name:"abort-p99" help:"Stop when the p99 response time of a second exceeds this (0: ten times the first second's, at least 100ms)." placeholder:"TIME"`
	Most        cli.Percent   `name:"max-overhead" default:"5%" help:"Highest overhead of timing its calls beforehand, as a share of the process's CPU."`
	Seed        uint64        `help:"Seed for the order of windows (0: 1)."`
	JSON        bool          `group:"Output:" name:"json" help:"Print JSON."`
}

// Help says what is done to the process, and what comes of it.
func (c *Command) Help() string {
	return `Examples:

  tare whatif --pid 4711 --owner mw.Auth --slow 20us
  tare whatif --pid 4711 --owner mw.go:34 --slow 50us --load http://localhost:8080/

An owner's own time is not the time that removing it would save. A slower server
changes how everything else runs: clients sleep and have to be woken, and garbage
collections come at other times. So a probe makes the owner spin, in windows that
alternate in random order with windows without. tare compares the CPU time of
whole requests: "1 µs in it costs a request 1.4 µs". Multiply that by the owner's
own time to estimate the saving.

This slows a running service down, so you have to name the owner. The probe delays each
call by at most --slow. It stops by itself at the end of a window, and is removed when
this command ends, even if it is killed.`
}

func (c *Command) check(t *cli.Terminal) error {
	if c.Slow == 0 || c.Window == 0 || c.For == 0 || c.Most == 0 {
		return cli.Usage("leave it out for the default", errors.New("--slow, --window, --for and --max-overhead must be more than 0"))
	}
	if err := c.Load.Check(t); err != nil {
		return err
	}
	if err := c.options(0).Check(); err != nil {
		return cli.Usage("", fmt.Errorf("--%w", err))
	}
	return nil
}

func (c *Command) options(pid int) whatif.Options {
	return whatif.Options{PID: pid, Owner: c.Owner, Slow: c.Slow, For: c.For, Window: c.Window, Layers: c.Layers,
		AbortP99: c.AbortP99, MaxOverhead: float64(c.Most) / 100, Seed: c.Seed, Load: c.Load.Options()}
}

// Run slows the owner down, on and off, and shows what comes of it.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	service, err := c.Process.Service(c.What, "tare whatif --pid N --owner NAME")
	if err := cmp.Or(err, c.check(t)); err != nil {
		return err
	}
	pid, err := service.Process(ctx)
	if err != nil {
		return explain(err)
	}
	o := c.options(pid)
	o.Progress = t.NoteLine
	res, err := whatif.Run(ctx, o)
	switch {
	case res == nil && ctx.Err() != nil:
		return fmt.Errorf("nothing was compared yet: %w", err)
	case res == nil:
		return explain(err)
	}
	if err := t.Show(ctx, cli.Result{JSON: res, Page: resultPage(res)}, c.JSON, nil); err != nil {
		return err
	}
	if errors.Is(err, whatif.ErrEnded) {
		return &cli.Failure{Status: cli.ExitEnded, Err: err}
	}
	return explain(err)
}

// explain adds a remedy to why owners cannot be slowed down, or not any more.
func explain(err error) error {
	var many *whatif.AmbiguousError
	switch {
	case errors.As(err, new(*whatif.TooSlow)):
		return &cli.Failure{Status: cli.ExitThreshold, Err: fmt.Errorf("stopped, and the probe removed: %w", err)}
	case errors.As(err, &many) && many.Met():
		return cli.Usage("name one by file.go:line", err)
	case errors.As(err, &many):
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "load the service, so that tare sees which of them handles requests; or name that one by file.go:line"}
	case errors.Is(err, whatif.ErrUnwatched):
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("--abort-p99: %w", err), Hint: "with --load URL the load measures response times"}
	}
	return cli.ExplainCapture(err)
}
