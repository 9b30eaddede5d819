package runs

import (
	"errors"
	"slices"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/lab/captured"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
)

// FindChanges compares the captures of each arm of a run with those of the control.
func FindChanges(run *record.Run) ([]comment.Change, error) {
	cells := captured.Cells(run)
	var all []comment.Change
	for _, cell := range cells {
		control := slices.IndexFunc(cells, func(c captured.Cell) bool { return c.Workload == cell.Workload && c.Arm == run.Manifest.Study.Control })
		if control < 0 || cell.Arm == cells[control].Arm {
			continue
		}
		before, err := cells[control].Profiles(run)
		if err != nil {
			return nil, err
		}
		after, err := cell.Profiles(run)
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

// compareSides is nil where a side has no profile of the kind.
func compareSides(before, after []diff.Capture) (*diff.Result, error) {
	r, err := diff.Compare(before, after, diff.Options{})
	if errors.Is(err, diff.ErrNothing) {
		return nil, nil
	}
	return r, err
}
