package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/flame"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/stats/unit"
)

// flameCmd draws where a program spends CPU.
type flameCmd struct {
	From   string        `arg:"" optional:"" help:"A service with net/http/pprof, or a saved CPU or allocation profile."`
	PID    int           `name:"pid" help:"A running process instead, sampled by eBPF: nothing is needed in it, but root here." placeholder:"N"`
	For    time.Duration `default:"10s" help:"Of a service or process: how long to look, in whole seconds."`
	Hz     int           `help:"Of a process: samples a second of each CPU (0: 499)." placeholder:"N"`
	Load   string        `help:"URL to load meanwhile." placeholder:"URL"`
	Conns  int           `name:"connections" short:"c" default:"16" help:"With --load: connections kept busy."`
	Header []string      `short:"H" sep:"none" help:"With --load: a header field to send; repeatable." placeholder:"NAME: VALUE"`
	Output string        `name:"output" short:"o" default:"flame.html" help:"File to write: .html for a page with the owners, .svg for the graph alone, .folded for stacks as text."`
}

// Help says what is drawn.
func (c *flameCmd) Help() string {
	return `Examples:

  tare flame localhost:6060
  tare flame cpu.pb.gz -o flame.svg
  tare flame --pid 4711 --for 30s -o flame.html

Each box is a function on top of its caller, as wide as what it and its callees
spent, in the colour of the owner to whom it is charged: a middleware, router,
engine or handler. The page has the table of owners too and can be searched and
zoomed; it works offline and, but for that, without scripts.`
}

// Run looks, and draws.
func (c *flameCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if err := cmp.Or(c.check(), t.RefuseFlags(c.saved(), "for a saved profile", "for"), t.RefuseFlags(c.Load == "", "without --load", "connections")); err != nil {
		return err
	}
	b, err := c.look(ctx, t)
	if err != nil {
		return err
	}
	p := pictured{bill: b, stacks: stacks(b.cpu), base: unit.Nanoseconds}
	if b.cpu == nil {
		p.stacks, p.base = stacks(b.allocs), unit.Bytes
	}
	if len(p.stacks) == 0 && ctx.Err() != nil {
		return &cli.Failure{Status: cli.ExitInterrupted, Err: fmt.Errorf("%s: nothing was seen to run until then", b.source)}
	}
	if len(p.stacks) == 0 {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s: nothing was seen to run", b.source), Hint: "put it under load meanwhile: --load URL"}
	}
	if err := cli.WriteFile(c.Output, p.forms()[filepath.Ext(c.Output)]); err != nil {
		return err
	}
	for _, w := range b.warnings {
		fmt.Fprintf(t.Err, "warning: %s\n", report.Printable(w.Error()))
	}
	fmt.Fprintln(t.Out, c.Output)
	if ctx.Err() != nil {
		return &cli.Failure{Status: cli.ExitInterrupted} // a warning says so
	}
	return nil
}

func (c *flameCmd) check() error {
	switch {
	case (c.From == "") == (c.PID == 0):
		return cli.Usage("tare flame URL, tare flame FILE or tare flame --pid N", errors.New("want one thing to look at"))
	case c.saved() && c.Load != "":
		return cli.Usage("", errors.New("--load does nothing for a saved profile"))
	case new(pictured).forms()[filepath.Ext(c.Output)] == nil:
		return cli.Usage("flame.html, flame.svg or flame.folded", fmt.Errorf("--output %s: the name does not say what to write", c.Output))
	}
	cost := c.cost()
	if err := cost.check(); err != nil {
		return err
	}
	return cli.CheckOutputs([]cli.Output{{Flag: "--output", Path: c.Output}}, c.From)
}

// cost is the question about cost whose stacks are drawn.
func (c *flameCmd) cost() *costCmd {
	one := &costCmd{PID: c.PID, Hz: c.Hz, For: c.For, Load: c.Load, Conns: c.Conns, Header: c.Header}
	if c.saved() {
		one.Profile = []string{c.From}
	} else {
		one.URL = c.From
	}
	return one
}

// saved reports whether the profile is a file.
func (c *flameCmd) saved() bool {
	info, err := os.Stat(c.From)
	return err == nil && !info.IsDir()
}

func (c *flameCmd) look(ctx context.Context, t *cli.Terminal) (*bill, error) {
	one, b := c.cost(), &bill{source: c.From}
	var err error
	switch {
	case len(one.Profile) > 0:
		err = b.read(one.Profile)
	case one.outside():
		err = one.watch(ctx, t, b)
	default:
		err = one.capture(ctx, t, b)
	}
	if err != nil {
		return nil, err
	}
	b.total = b.sum()
	return b, nil
}

// pictured are stacks to draw.
type pictured struct {
	bill   *bill
	stacks []cost.Stack
	base   string // of their values
}

// forms are the ways to write them, by the end of a file's name.
func (p *pictured) forms() map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		".html":   func(w io.Writer) error { return page.WriteStacks(w, p.bill.total, p.stacks, p.base) },
		".svg":    func(w io.Writer) error { return flame.SVG(w, flame.Layout(p.stacks, flame.Options{}), p.base) },
		".folded": func(w io.Writer) error { return foldStacks(w, p.stacks) },
	}
}

// foldStacks writes a line a stack, outermost first: the owner and cause, then
// the functions; and the value.
func foldStacks(w io.Writer, stacks []cost.Stack) error {
	out := bufio.NewWriter(w)
	clean := strings.NewReplacer(";", ",", " ", "_", "\n", "_", "\r", "_")
	rules := cost.Learn(stacks)
	for _, s := range stacks {
		owner, cause := rules.Charge(s.Frames)
		names := []string{owner.Name, cause.String()}
		for _, f := range slices.Backward(s.Frames) {
			names = append(names, f.Func)
		}
		for i, n := range names {
			names[i] = clean.Replace(n)
		}
		fmt.Fprintf(out, "%s %.0f\n", strings.Join(names, ";"), s.Value)
	}
	return out.Flush()
}
