package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// studied is what the captures of one arm under one workload come to.
type studied struct {
	Arm      string `json:"arm"`
	Workload string `json:"workload"`
	*cost.Bill
	b *bill
}

// ofStudy shows who spent what in the arms of a run, read anew from the profiles
// that it kept.
func (c *costCmd) ofStudy(t *cli.Terminal) error {
	if c.sources() > 0 || c.besides() {
		return cli.Usage("tare cost --study RUN", errors.New("--study shows what a run kept: nothing is profiled, watched, loaded or counted beside it"))
	}
	if err := t.RefuseFlags(true, "beside --study", "for", "connections", "count", "max-overhead"); err != nil {
		return err
	}
	if err := cli.CheckOutputs(c.outputs()); err != nil {
		return err
	}
	dir, err := runs.Find(c.Study)
	if err != nil {
		return err
	}
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	all, err := c.arms(t, run)
	if err != nil {
		return err
	}
	if len(all) > 1 && (c.HTML != "" || c.Folded != "" || c.Labelled != "") {
		return cli.Usage("name one with --arm, and --workload if need be", fmt.Errorf("a file holds one arm under one workload; the run has %d", len(all)))
	}
	unwritten := c.write(all[0].b) // the table is shown all the same
	if c.JSON {
		return errors.Join(unwritten, t.JSON(all))
	}
	return errors.Join(unwritten, printStudied(t, all))
}

// besides tells whether something is asked for that goes with looking at a service.
func (c *costCmd) besides() bool {
	return c.Load != "" || c.Rate != 0 || len(c.Header) > 0 || c.Requests != 0 ||
		c.Waits || c.Marks || len(c.Owner) > 0 || c.Hz != 0
}

// printStudied shows one arm after the other.
func printStudied(t *cli.Terminal, all []studied) error {
	for i := range all {
		if i > 0 {
			fmt.Fprintln(t.Out)
		}
		if err := all[i].b.text(t); err != nil {
			return err
		}
	}
	return nil
}

// outputs are the files asked for.
func (c *costCmd) outputs() []cli.Output {
	return []cli.Output{{Flag: "--html", Path: c.HTML}, {Flag: "--folded", Path: c.Folded}, {Flag: "--pprof", Path: c.Labelled}}
}

// arms are the run's arms that were profiled, as far as they are asked for.
func (c *costCmd) arms(t *cli.Terminal, run *record.Run) ([]studied, error) {
	if len(run.Captures) == 0 {
		return nil, &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s holds no profiles", run.Dir),
			Hint: "profiles are kept of studies that say `attribute`, such as nesting; docs/study-files.md tells more"}
	}
	var all []studied
	var known []string
	for _, w := range run.Manifest.Study.Workloads {
		for _, a := range run.Manifest.Study.Arms {
			of := slices.DeleteFunc(slices.Clone(run.Captures), func(p record.Capture) bool {
				return p.Arm != a.Name || p.Workload != w.Name || len(p.Invalid) > 0
			})
			if len(of) == 0 {
				continue
			}
			known = append(known, a.Name+" under "+w.Name)
			if c.Arm != "" && c.Arm != a.Name || c.Workload != "" && c.Workload != w.Name {
				continue
			}
			one, err := newStudied(run, of)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	if lost := runs.LostCaptures(run, c.Arm, c.Workload); len(all) > 0 {
		runs.PrintLost(t.Err, lost)
	} else if err := runs.AllLost(run, lost); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, cli.Usage("there are "+strings.Join(known, ", "), fmt.Errorf("%s holds no profile of that arm under that workload", run.Dir))
	}
	return all, nil
}

// newStudied adds an arm's captures up.
func newStudied(run *record.Run, captures []record.Capture) (studied, error) {
	m, err := merge(run, captures)
	if err != nil {
		return studied{}, err
	}
	if !m.sampled {
		m.window = m.traced
	}
	b := &bill{
		source: fmt.Sprintf("%s, %s, %s of %s", captures[0].Arm, captures[0].Workload, cli.Count(uint64(m.captures), "capture"), run.Manifest.ID),
		window: m.window, warnings: m.warnings,
	}
	if m.sampled {
		b.cpu = pprof.New(pprof.CPU, m.window.Duration, m.cpu)
	}
	if len(m.allocs) > 0 {
		b.allocs = pprof.New(pprof.Allocs, m.window.Duration, m.allocs)
	}
	b.total = b.sum()
	if m.traced.Duration > 0 {
		b.total.AddWaits(m.waits, m.traced)
	}
	return studied{captures[0].Arm, captures[0].Workload, b.total, b}, nil
}

// telling are an arm's captures with what is shown of them: traces, and the samples of
// one source, where there are two those of the runtime's own profiler. The other has no
// bytes, so that a request would seem to allocate less.
func telling(captures []record.Capture) []record.Capture {
	by := func(source study.Source) func(record.Seen) bool {
		return func(s record.Seen) bool { return s.Source == source }
	}
	if !slices.ContainsFunc(captures, func(c record.Capture) bool { return slices.ContainsFunc(c.Seen, by(study.Pprof)) }) {
		return captures
	}
	var all []record.Capture
	for _, c := range captures {
		if c.Seen = slices.DeleteFunc(slices.Clone(c.Seen), by(study.EBPF)); len(c.Seen) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// merged are the stacks of several captures, scaled to what each process spent.
type merged struct {
	run         *record.Run
	captures    int // that tell them
	sampled     bool
	cpu, allocs []cost.Stack
	window      cost.Window // of the samples
	waits       []cost.Wait
	traced      cost.Window
	warnings    []error // of the first capture that has any, the others are like it; then broken
	broken      []error // of each trace that breaks off
}

// merge adds captures of an arm under a workload up.
func merge(run *record.Run, captures []record.Capture) (*merged, error) {
	captures = telling(captures)
	m := &merged{run: run, captures: len(captures)}
	for i := range captures {
		if err := m.add(&captures[i]); err != nil {
			return nil, fmt.Errorf("capture %d: %w", captures[i].Seq, err)
		}
	}
	m.warnings = append(m.warnings, m.broken...)
	return m, nil
}

func (m *merged) add(c *record.Capture) error {
	for _, s := range c.Seen {
		add := m.addSamples
		if s.Source == study.Trace {
			add = m.addTrace
		}
		if err := add(c, s.Files); err != nil {
			return err
		}
	}
	return nil
}

func (m *merged) addSamples(c *record.Capture, files map[string]string) error {
	cpu, err := captured(m.run, files["cpu"])
	if err != nil {
		return err
	}
	var allocs *pprof.Profile
	if name := files["allocs"]; name != "" {
		if allocs, err = captured(m.run, name); err != nil {
			return err
		}
	}
	time, memory, _ := lab.Scaled(c, cpu, allocs)
	m.sampled = true
	if len(m.warnings) == 0 {
		m.warnings = cpu.Warnings
	}
	m.cpu, m.allocs = append(m.cpu, time...), append(m.allocs, memory...)
	widen(&m.window, c.Elapsed, float64(c.Requests))
	return nil
}

func (m *merged) addTrace(c *record.Capture, files map[string]string) error {
	name := files["trace"]
	raw, err := m.run.Profile(name)
	if err != nil {
		return err
	}
	t, err := exectrace.Read(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if t.Broken != nil {
		m.broken = append(m.broken, fmt.Errorf("%s: %w", name, t.Broken))
	}
	part := lab.Traced(c, t)
	m.waits = append(m.waits, t.Waits...)
	widen(&m.traced, part.Duration, part.Requests)
	return nil
}

// captured reads a profile of a run's.
func captured(run *record.Run, name string) (*pprof.Profile, error) {
	raw, err := run.Profile(name)
	if err != nil {
		return nil, err
	}
	p, err := pprof.Read(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func widen(w *cost.Window, d time.Duration, requests float64) {
	w.Duration += d
	w.Requests += requests
}
