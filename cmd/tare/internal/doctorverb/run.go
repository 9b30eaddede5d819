package doctorverb

import (
	"fmt"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/lab/record"
)

// fromRun makes evidence of each cell of a run from the profiles that it kept.
func (c *Command) fromRun(t *cli.Terminal, dir string) ([]*doctor.Evidence, error) {
	run, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	cells, err := runs.FindCells(t, run, c.Arm, "")
	if err != nil {
		return nil, err
	}
	var all []*doctor.Evidence
	for _, cell := range cells {
		seen, err := cell.Merge(run)
		if err != nil {
			return nil, fmt.Errorf("%s, %s, %s: %w", dir, cell.Arm, cell.Workload, err)
		}
		e := newEvidence(seen)
		e.Subject = fmt.Sprintf("%s, in %s", cell, dir)
		all = append(all, e)
	}
	return all, nil
}

// newEvidence makes evidence of what a run keeps.
func newEvidence(c *capture.Capture) *doctor.Evidence {
	e := &doctor.Evidence{
		Reasons: map[doctor.Part]string{}, Warnings: cli.Texts(c.Warnings),
		CPU: capture.Stacks(c.CPU), Allocs: capture.Stacks(c.Allocs), Window: c.Window, Waits: c.Waits, Traced: c.Traced,
	}
	for _, p := range []doctor.Part{doctor.LiveHeap, doctor.GoroutineCounts, doctor.MemoryStatistics, doctor.ProcessFacts, doctor.CPUQuota, doctor.HalfHeader, doctor.Source} {
		e.Reasons[p] = "a run keeps none"
	}
	for p, missing := range map[doctor.Part]bool{doctor.CPUProfile: e.CPU == nil, doctor.AllocationProfile: e.Allocs == nil, doctor.ExecutionTrace: e.Waits == nil} {
		if missing {
			e.Reasons[p] = "the study asks for none"
		}
	}
	return e
}
