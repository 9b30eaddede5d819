// Package captured reads the profiles that a run keeps of its arms, cell by cell.
package captured

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/unit"
)

// Cell holds the captures of an arm under a workload that count.
type Cell struct {
	Arm, Workload string
	Captures      []record.Capture
}

// String names the cell.
func (c Cell) String() string { return c.Arm + " under " + c.Workload }

// Cells are the cells of a run that were profiled, in the study's order.
func Cells(run *record.Run) []Cell {
	var all []Cell
	for _, taken := range run.Captures {
		if len(taken.Invalid) > 0 || len(taken.Seen) == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(c Cell) bool { return c.Arm == taken.Arm && c.Workload == taken.Workload })
		if i < 0 {
			i = len(all)
			all = append(all, Cell{Arm: taken.Arm, Workload: taken.Workload})
		}
		all[i].Captures = append(all[i].Captures, taken)
	}
	s := &run.Manifest.Study
	place := func(c Cell) (workload, arm int) {
		return slices.IndexFunc(s.Workloads, func(w study.Workload) bool { return w.Name == c.Workload }),
			slices.IndexFunc(s.Arms, func(a study.Arm) bool { return a.Name == c.Arm })
	}
	slices.SortStableFunc(all, func(a, b Cell) int {
		wa, aa := place(a)
		wb, ab := place(b)
		return cmp.Or(cmp.Compare(wa, wb), cmp.Compare(aa, ab))
	})
	return all
}

// Shown returns a cell's captures with what is shown of them: traces, and the samples of
// one source, where there are two those of the runtime's own profiler. The other has no
// bytes, so that a request would seem to allocate less.
func (c Cell) Shown() []record.Capture {
	by := func(source study.Source) func(record.Seen) bool {
		return func(s record.Seen) bool { return s.Source == source }
	}
	if !slices.ContainsFunc(c.Captures, func(c record.Capture) bool { return slices.ContainsFunc(c.Seen, by(study.Pprof)) }) {
		return c.Captures
	}
	var all []record.Capture
	for _, one := range c.Captures {
		if one.Seen = slices.DeleteFunc(slices.Clone(one.Seen), by(study.EBPF)); len(one.Seen) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// Merge adds a cell's captures up, each scaled to what its process spent.
func (c Cell) Merge(run *record.Run) (*capture.Capture, error) {
	shown := c.Shown()
	m := &merged{run: run, c: &capture.Capture{
		Source: fmt.Sprintf("%s, %s, %s of %s", c.Arm, c.Workload, unit.Plural(len(shown), "capture"), run.Manifest.ID)}}
	for i := range shown {
		if err := m.add(&shown[i]); err != nil {
			return nil, fmt.Errorf("capture %d: %w", shown[i].Seq, err)
		}
	}
	if m.sampled {
		m.c.CPU = pprof.New(pprof.CPU, m.c.Window.Duration, m.cpu)
	} else {
		m.c.Window = m.c.Traced
	}
	if len(m.allocs) > 0 {
		m.c.Allocs = pprof.New(pprof.Allocs, m.c.Window.Duration, m.allocs)
	}
	m.c.Warnings = append(m.c.Warnings, m.broken...)
	return m.c, nil
}

// merged is a capture that others are added to.
type merged struct {
	run         *record.Run
	c           *capture.Capture // with the warnings of the first capture that has any: the others are like it
	sampled     bool
	cpu, allocs []cost.Stack
	broken      []error // of each trace that breaks off
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
	cpu, allocs, err := readProfiles(m.run, files)
	if err != nil {
		return err
	}
	if cpu == nil {
		return errors.New("it has no CPU profile")
	}
	time, memory, _ := lab.Scaled(c, cpu, allocs)
	m.sampled = true
	if len(m.c.Warnings) == 0 {
		m.c.Warnings = cpu.Warnings
	}
	m.cpu, m.allocs = append(m.cpu, time...), append(m.allocs, memory...)
	widen(&m.c.Window, c.Elapsed, float64(c.Requests))
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
	m.c.Waits = append(m.c.Waits, t.Waits...)
	widen(&m.c.Traced, part.Duration, part.Requests)
	return nil
}

func widen(w *cost.Window, d time.Duration, requests float64) {
	w.Duration += d
	w.Requests += requests
}

// readProfiles reads a capture's profiles, of which either may be missing.
func readProfiles(run *record.Run, files map[string]string) (cpu, allocs *pprof.Profile, err error) {
	for kind, into := range map[string]**pprof.Profile{"cpu": &cpu, "allocs": &allocs} {
		name := files[kind]
		if name == "" {
			continue
		}
		raw, err := run.Profile(name)
		if err != nil {
			return nil, nil, err
		}
		if *into, err = pprof.Read(bytes.NewReader(raw)); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return cpu, allocs, nil
}
