package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/flame"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/stats/unit"
)

// flameCmd draws where a program spends CPU.
type flameCmd struct {
	From   string        `arg:"" optional:"" help:"A service with net/http/pprof, or a saved CPU or allocation profile."`
	PID    int           `name:"pid" help:"A running process instead, sampled by eBPF: nothing is needed in it, but root here." placeholder:"N"`
	For    time.Duration `default:"10s" help:"Of a service or process: how long to look, in whole seconds."`
	Hz     int           `help:"Of a process: samples a second of each CPU (0: 99)." placeholder:"N"`
	Output string        `name:"output" short:"o" default:"flame.html" help:"File to write: .html for a page with the owners, .svg for the graph alone, .folded for stacks as text." placeholder:"FILE"`
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

// pictured are stacks to draw, and what they are of.
type pictured struct {
	source   string
	stacks   []cost.Stack
	kind     pprof.Kind
	window   cost.Window
	warnings []error
}

// Run looks, and draws.
func (c *flameCmd) Run(ctx context.Context, t *terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	p, err := c.look(ctx, t)
	if err != nil {
		return err
	}
	if len(p.stacks) == 0 {
		return &failure{status: exitCould, err: fmt.Errorf("%s: nothing was seen to run", p.source), hint: "put the service under load meanwhile"}
	}
	write := map[string]func(io.Writer) error{".html": p.page, ".svg": p.svg, ".folded": p.folded}[filepath.Ext(c.Output)]
	if err := keepFile(c.Output, write); err != nil {
		return err
	}
	for _, w := range p.warnings {
		fmt.Fprintf(t.err, "warning: %s\n", w)
	}
	fmt.Fprintln(t.out, c.Output)
	return nil
}

func (c *flameCmd) check() error {
	switch {
	case (c.From == "") == (c.PID == 0):
		return asked("tare flame URL, tare flame FILE or tare flame --pid N", errors.New("want one thing to look at"))
	case c.PID < 0:
		return asked("", fmt.Errorf("--pid %d is no process", c.PID))
	case c.For < time.Second || c.For > time.Hour || c.For%time.Second != 0:
		return asked("", fmt.Errorf("--for %s: whole seconds, at least 1s, at most 1h", c.For))
	case c.Hz < 0 || c.Hz > bpf.MaxHz:
		return asked("", fmt.Errorf("--hz %d: at least 0, at most %d", c.Hz, bpf.MaxHz))
	case c.Hz > 0 && c.PID == 0:
		return asked("", errors.New("--hz goes with --pid: a service's own profiler has a rate of its own"))
	case !slices.Contains([]string{".html", ".svg", ".folded"}, filepath.Ext(c.Output)):
		return asked("flame.html, flame.svg or flame.folded", fmt.Errorf("--output %s: the name does not say what to write", c.Output))
	}
	return writable([]output{{"--output", c.Output}})
}

func (c *flameCmd) look(ctx context.Context, t *terminal) (*pictured, error) {
	if c.PID > 0 {
		return c.sample(ctx, t)
	}
	if info, err := os.Stat(c.From); err == nil && !info.IsDir() {
		p, err := readProfile(c.From)
		if err != nil {
			return nil, err
		}
		return pictureOf(c.From, p), nil
	}
	s, err := pprof.Find(c.From)
	if err != nil {
		return nil, asked("such as localhost:6060, or a file", err)
	}
	fmt.Fprintf(t.err, "profiling %s for %s\n", s, c.For)
	p, err := s.CPU(ctx, c.For)
	if err != nil {
		return nil, unprofiled(err)
	}
	return pictureOf(s.String(), p), nil
}

func pictureOf(source string, p *pprof.Profile) *pictured {
	return &pictured{source: source, stacks: p.Stacks, kind: p.Kind, window: cost.Window{Duration: p.Duration, Requests: p.Requests()}}
}

// sample watches a process from outside until the time is over, it ends, or
// somebody interrupts.
func (c *flameCmd) sample(ctx context.Context, t *terminal) (*pictured, error) {
	s, err := bpf.Start(bpf.Options{PID: c.PID, Hz: c.Hz})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(t.err, "sampling process %d for %s\n", c.PID, c.For)
	over := time.NewTimer(c.For)
	defer over.Stop()
	select {
	case <-over.C:
	case <-s.Ended():
	case <-ctx.Done():
	}
	p, err := s.Stop()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &pictured{
		source: fmt.Sprintf("process %d", c.PID), stacks: p.Stacks,
		window: cost.Window{Duration: p.Duration}, warnings: p.Warnings,
	}, nil
}

func (p *pictured) page(w io.Writer) error {
	cpu, allocs := p.stacks, []cost.Stack(nil)
	if p.kind == pprof.Allocs {
		cpu, allocs = nil, p.stacks
	}
	b := cost.NewBill(cpu, allocs, p.window)
	b.Source = p.source
	for _, warning := range p.warnings {
		b.Warnings = append(b.Warnings, warning.Error())
	}
	return page.WriteStacks(w, b, p.stacks, p.base())
}

func (p *pictured) svg(w io.Writer) error {
	return flame.SVG(w, flame.Layout(p.stacks, flame.Options{}), p.base())
}

func (p *pictured) folded(w io.Writer) error { return foldStacks(w, p.stacks) }

func (p *pictured) base() string {
	if p.kind == pprof.Allocs {
		return unit.Bytes
	}
	return unit.Nanoseconds
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
