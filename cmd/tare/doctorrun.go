package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// cell is an arm under a workload.
type cell struct{ arm, workload string }

// fromRun makes evidence of each cell of a run from the profiles that it kept.
func (c *doctorCmd) fromRun(t *terminal, dir string) ([]*doctor.Evidence, error) {
	run, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	var order []cell
	captures := map[cell][]record.Capture{}
	for _, taken := range run.Captures {
		at := cell{taken.Arm, taken.Workload}
		if len(taken.Invalid) > 0 || len(taken.Seen) == 0 || c.Arm != "" && c.Arm != taken.Arm {
			continue
		}
		if captures[at] == nil {
			order = append(order, at)
		}
		captures[at] = append(captures[at], taken)
	}
	if lost := lostCaptures(run, c.Arm, ""); len(order) > 0 {
		tellLost(t.err, lost)
	} else if err := allLost(run, lost); err != nil {
		return nil, err
	}
	if len(order) == 0 {
		return nil, &failure{status: exitCould, err: fmt.Errorf("%s keeps no profiles%s", dir, ofArm(c.Arm)), hint: "they are kept of studies that attribute costs: see docs/study-files.md"}
	}
	var all []*doctor.Evidence
	for _, at := range order {
		e, err := evidenceOf(run, captures[at])
		if err != nil {
			return nil, fmt.Errorf("%s, %s, %s: %w", dir, at.arm, at.workload, err)
		}
		e.Subject = fmt.Sprintf("%s under %s, in %s", at.arm, at.workload, dir)
		all = append(all, e)
	}
	return all, nil
}

func ofArm(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" of the arm %q", name)
}

// evidenceOf adds up the captures of one cell.
func evidenceOf(run *record.Run, captures []record.Capture) (*doctor.Evidence, error) {
	e := &doctor.Evidence{Reasons: map[doctor.Part]string{}}
	for _, p := range []doctor.Part{doctor.LiveHeap, doctor.GoroutineCounts, doctor.MemoryStatistics, doctor.ProcessFacts, doctor.CPUQuota, doctor.HalfHeader, doctor.Source} {
		e.Reasons[p] = "a run keeps none"
	}
	for i := range captures {
		if err := addCapture(e, run, &captures[i]); err != nil {
			return nil, err
		}
	}
	for p, missing := range map[doctor.Part]bool{doctor.CPUProfile: e.CPU == nil, doctor.AllocationProfile: e.Allocs == nil, doctor.ExecutionTrace: e.Waits == nil} {
		if missing {
			e.Reasons[p] = "the study asks for none"
		}
	}
	return e, nil
}

// addCapture adds one look at an arm. Of two sources of CPU stacks the runtime's
// own is taken: it comes with allocations.
func addCapture(e *doctor.Evidence, run *record.Run, c *record.Capture) error {
	own := slices.ContainsFunc(c.Seen, func(s record.Seen) bool { return s.Source == study.Pprof })
	window := cost.Window{Duration: c.Elapsed, Requests: float64(c.Requests)}
	for _, seen := range c.Seen {
		if own && seen.Source == study.EBPF {
			continue
		}
		if seen.Source != study.Trace {
			if err := addProfiles(e, run, c, seen.Files); err != nil {
				return err
			}
			continue
		}
		for _, name := range seen.Files {
			raw, err := run.Profile(name)
			if err != nil {
				return err
			}
			if err := addTrace(e, raw, window); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func addTrace(e *doctor.Evidence, raw []byte, window cost.Window) error {
	tr, err := exectrace.Read(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	e.Waits = append(e.Waits, tr.Waits...)
	e.Traced = together(e.Traced, window.Over(tr.Duration))
	return nil
}

// addProfiles adds a capture's profiles, scaled to what was counted over the time
// of its requests: they are shorter than that.
func addProfiles(e *doctor.Evidence, run *record.Run, c *record.Capture, files map[string]string) error {
	m := merged{run: run}
	if files["cpu"] == "" {
		return nil
	}
	if err := m.addSamples(c, files); err != nil {
		return err
	}
	e.CPU, e.Allocs = append(e.CPU, m.cpu...), append(e.Allocs, m.allocs...)
	if len(e.Warnings) == 0 { // the captures of one cell are alike
		e.Warnings = texts(m.warnings)
	}
	e.Window = together(e.Window, m.window)
	return nil
}

func together(a, b cost.Window) cost.Window {
	return cost.Window{Duration: a.Duration + b.Duration, Requests: a.Requests + b.Requests}
}
