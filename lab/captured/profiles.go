package captured

import (
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
)

// Profiles are captures of one side of a comparison.
type Profiles struct {
	CPU, Allocs []diff.Capture
	Warnings    []error
}

// add reads a capture of a run, if it is no trace.
func (p *Profiles) add(run *record.Run, c record.Capture) error {
	w := cost.Window{Duration: c.Elapsed, Requests: float64(c.Requests)}
	for _, seen := range c.Seen {
		cpu, allocs, err := readProfiles(run, seen.Files)
		if err != nil {
			return err
		}
		if cpu == nil {
			continue
		}
		p.Warnings = append(p.Warnings, cpu.Warnings...)
		// The profile is shorter than the time over which requests were counted:
		// as in the report, it is scaled to what was counted over all of that, but for
		// how often each stack was seen.
		if allocs != nil {
			p.Warnings = append(p.Warnings, allocs.Warnings...)
			allocs.Stacks, c.Objects = allocs.Sampled(), 0
		}
		time, memory, _ := lab.Scaled(&c, cpu, allocs)
		p.CPU = append(p.CPU, diff.Capture{Stacks: time, Window: w})
		if allocs != nil {
			p.Allocs = append(p.Allocs, diff.Capture{Stacks: memory, Window: w})
		}
	}
	return nil
}

// Profiles reads the samples of a cell's captures that are shown.
func (c Cell) Profiles(run *record.Run) (*Profiles, error) {
	var p Profiles
	for _, one := range c.Shown() {
		if err := p.add(run, one); err != nil {
			return nil, err
		}
	}
	return &p, nil
}
