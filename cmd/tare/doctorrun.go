package main

import (
	"fmt"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/lab/record"
)

// cell is an arm under a workload.
type cell struct{ arm, workload string }

// fromRun makes evidence of each cell of a run from the profiles that it kept.
func (c *doctorCmd) fromRun(t *cli.Terminal, dir string) ([]*doctor.Evidence, error) {
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
	if lost := runs.LostCaptures(run, c.Arm, ""); len(order) > 0 {
		runs.PrintLost(t.Err, lost)
	} else if err := runs.AllLost(run, lost); err != nil {
		return nil, err
	}
	if len(order) == 0 {
		return nil, &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s keeps no profiles%s", dir, ofArm(c.Arm)), Hint: "they are kept of studies that attribute costs: see docs/study-files.md"}
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
	m, err := merge(run, captures)
	if err != nil {
		return nil, err
	}
	e := &doctor.Evidence{
		Reasons: map[doctor.Part]string{}, Warnings: cli.Texts(m.warnings),
		CPU: m.cpu, Allocs: m.allocs, Window: m.window, Waits: m.waits, Traced: m.traced,
	}
	for _, p := range []doctor.Part{doctor.LiveHeap, doctor.GoroutineCounts, doctor.MemoryStatistics, doctor.ProcessFacts, doctor.CPUQuota, doctor.HalfHeader, doctor.Source} {
		e.Reasons[p] = "a run keeps none"
	}
	for p, missing := range map[doctor.Part]bool{doctor.CPUProfile: e.CPU == nil, doctor.AllocationProfile: e.Allocs == nil, doctor.ExecutionTrace: e.Waits == nil} {
		if missing {
			e.Reasons[p] = "the study asks for none"
		}
	}
	return e, nil
}
