// Package flameverb draws flame graphs coloured by owner: the verb flame.
package flameverb

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/flame"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// Command draws where a program spends CPU.
type Command struct {
	What        string `arg:"" optional:"" name:"url|pid|file" help:"A service with net/http/pprof, a process, or a saved CPU or allocation profile."`
	cli.Process `group:"Service:"`
	cli.For
	cli.Load `group:"Load:"`
	cli.Hz
	Output string `group:"Output:" short:"o" default:"flame.html" help:"File to write: .html with the owners, .svg for the graph alone, .folded for stacks (default: flame.html)."`
}

// Help says what is drawn.
func (c *Command) Help() string {
	return `Examples:

  tare flame localhost:6060
  tare flame cpu.pb.gz -o flame.svg
  tare flame --pid 4711 --for 30s -o flame.html

Each box is a function on top of its caller. Its width is what it and its callees spent.
Its colour is the owner that is charged: a middleware, router, engine or handler. The
page also has the table of owners, works offline, and supports search and zoom.`
}

// Run looks, and draws.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	seen, err := c.capture(ctx, t)
	if err != nil {
		return err
	}
	p := picture{bill: seen.Bill(), stacks: capture.Stacks(seen.CPU), base: unit.Nanoseconds}
	if seen.CPU == nil {
		p.stacks, p.base = capture.Stacks(seen.Allocs), unit.Bytes
	}
	if len(p.stacks) == 0 && ctx.Err() != nil {
		return &cli.Failure{Status: cli.ExitInterrupted, Err: fmt.Errorf("%s: nothing was seen to run until then", seen.Source)}
	}
	if len(p.stacks) == 0 && seen.Ended() {
		return &cli.Failure{Status: cli.ExitEnded, Err: fmt.Errorf("%s has ended: nothing was seen to run until then", seen.Source)}
	}
	if len(p.stacks) == 0 {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s: nothing was seen to run", seen.Source), Hint: "put it under load meanwhile: --load URL"}
	}
	if err := cli.WriteFile(c.Output, p.forms()[filepath.Ext(c.Output)]); err != nil {
		return err
	}
	for _, w := range seen.Warnings {
		fmt.Fprintf(t.Err, "Warning: %s\n", doc.Printable(w.Error()))
	}
	fmt.Fprintln(t.Out, c.Output)
	if ctx.Err() != nil {
		return &cli.Failure{Status: cli.ExitInterrupted} // a warning says so
	}
	if seen.Ended() {
		return &cli.Failure{Status: cli.ExitEnded} // so does one here
	}
	return nil
}

// capture looks at the service, or reads its profile.
func (c *Command) capture(ctx context.Context, t *cli.Terminal) (*capture.Capture, error) {
	if err := c.check(t); err != nil {
		return nil, err
	}
	if c.saved() {
		if err := cmp.Or(t.RefuseFlags(true, "for a saved profile", "for", "load"), c.Hz.Check(false)); err != nil {
			return nil, err
		}
		seen, err := capture.Read(0, c.What)
		if err == nil {
			seen.Source = c.What
		}
		return seen, err
	}
	s, err := c.Process.Service(c.What, "tare flame URL, tare flame FILE or tare flame --pid N")
	if err != nil {
		return nil, err
	}
	if err := c.Hz.Check(s.Outside()); err != nil {
		return nil, err
	}
	o := capture.Options{For: c.For.For, Hz: c.Hz.Hz, Load: c.Load.Options(), Progress: t.NoteLine}
	return cli.Capture(ctx, s, capture.Cheapest, o)
}

func (c *Command) check(t *cli.Terminal) error {
	if new(picture).forms()[filepath.Ext(c.Output)] == nil {
		return cli.Usage("flame.html, flame.svg or flame.folded", fmt.Errorf("--output %s: the name does not say what to write", c.Output))
	}
	return cmp.Or(c.For.Check(time.Hour), c.Load.Check(t), cli.CheckOutputs([]cli.Output{{Flag: "--output", Path: c.Output}}, c.What))
}

// saved reports whether the profile is a file.
func (c *Command) saved() bool {
	info, err := os.Stat(c.What)
	return err == nil && !info.IsDir() && !c.Named()
}

// picture holds stacks to draw.
type picture struct {
	bill   *cost.Bill
	stacks []cost.Stack
	base   string // of their values
}

// forms are the ways to write them, by the end of a file's name.
func (p *picture) forms() map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		".html":   func(w io.Writer) error { return page.WriteStacks(w, p.bill, p.stacks, p.base) },
		".svg":    func(w io.Writer) error { return flame.SVG(w, flame.Layout(p.stacks, flame.Options{}), p.base) },
		".folded": func(w io.Writer) error { return flame.Fold(w, p.stacks) },
	}
}
