package runs

import (
	"errors"
	"slices"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
)

// Profiles are captures of one side of a comparison.
type Profiles struct {
	CPU, Allocs []diff.Capture
	Warnings    []error
}

// Add reads a capture of a run, if it is no trace.
func (p *Profiles) Add(run *record.Run, c record.Capture) error {
	w := cost.Window{Duration: c.Elapsed, Requests: float64(c.Requests)}
	for _, seen := range c.Seen {
		cpu, allocs, err := ReadProfiles(run, seen.Files)
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

// FindChanges compares the captures of each arm of a run with those of the control.
func FindChanges(run *record.Run) ([]comment.Change, error) {
	cells := cellsOf(run)
	var all []comment.Change
	for _, cell := range cells {
		control := slices.IndexFunc(cells, func(c Cell) bool { return c.Workload == cell.Workload && c.Arm == run.Manifest.Study.Control })
		if control < 0 || cell.Arm == cells[control].Arm {
			continue
		}
		before, err := cells[control].profiles(run)
		if err != nil {
			return nil, err
		}
		after, err := cell.profiles(run)
		if err != nil {
			return nil, err
		}
		c := comment.Change{Workload: cell.Workload, Arm: cell.Arm}
		if c.CPU, err = compareSides(before.CPU, after.CPU); err != nil {
			return nil, err
		}
		if c.Bytes, err = compareSides(before.Allocs, after.Allocs); err != nil {
			return nil, err
		}
		if c.CPU != nil || c.Bytes != nil {
			all = append(all, c)
		}
	}
	return all, nil
}

func (c Cell) profiles(run *record.Run) (*Profiles, error) {
	var p Profiles
	for _, one := range c.Shown() {
		if err := p.Add(run, one); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

// compareSides is nil where a side has no profile of the kind.
func compareSides(before, after []diff.Capture) (*diff.Result, error) {
	r, err := diff.Compare(before, after, diff.Options{})
	if errors.Is(err, diff.ErrNothing) {
		return nil, nil
	}
	return r, err
}
