package capture

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/stats/unit"
)

// Calls say which calls of a program to time by the clock, and what that may cost it.
type Calls struct {
	Owners      []string          // names; none: all that handle requests
	For         time.Duration     // how long to look, calls being timed for a part of it
	MaxOverhead float64           // the largest share of the program's CPU that timing may take, up to 1
	Progress    func(line string) // receives a line for people before it begins; nil: nobody reads it
}

// Time times calls of a program. It first looks what that would cost, and times them
// for as large a part of the time as the budget allows. It does not begin if that is
// less than a tenth, and returns a [BudgetError].
func (c Calls) Time(ctx context.Context, t *probe.Target) (*probe.Measurement, error) {
	price, err := probe.Calibrate(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := t.Owners(ctx, c.Owners, probe.Glance)
	if err != nil {
		return nil, err
	}
	w, err := t.NewWatch(owners, price)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	f, err := w.Look(ctx, probe.Glance)
	if err != nil {
		return nil, err
	}
	o, err := c.plan(f)
	if err != nil {
		return nil, err
	}
	named := 0 // the others are called by these
	for _, owner := range owners {
		if !owner.Aside {
			named++
		}
	}
	if c.Progress != nil {
		c.Progress(fmt.Sprintf("timing calls of %s for %s: a hit costs %s here, and %s hits a second are %s of the process's CPU while they are timed, which is %s of the time",
			countOwners(named), c.For, unit.Format(float64(price.Hit), unit.Nanoseconds), unit.Number(math.Round(f.Hits)), unit.Format(f.Share, unit.Share), unit.Format(o.Share, unit.Share)))
	}
	m, err := w.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	if took := m.Share(price) * o.Share; took > c.MaxOverhead {
		m.Warnings = append(m.Warnings, fmt.Errorf("watching took %s of the process's CPU time: there were more calls than while it was looked at", unit.Format(took, unit.Share)))
	}
	for _, o := range probe.Uncalled(owners, m.Walls) {
		m.Warnings = append(m.Warnings, t.ErrUncalled(ctx, o, m.Requests))
	}
	return m, nil
}

// plan returns how calls can be timed within the budget, given what timing all of them
// would cost.
func (c Calls) plan(f *probe.Forecast) (probe.Options, error) {
	share := 1.0
	if f.Share > c.MaxOverhead {
		share = c.MaxOverhead / f.Share
	}
	if share < probe.LeastShare {
		return probe.Options{}, &BudgetError{Owners: len(f.Calls), Share: f.Share * probe.LeastShare, Most: c.MaxOverhead}
	}
	// Two windows, or one that is long enough to see calls end.
	window := max(200*time.Millisecond, min(time.Second, time.Duration(share*float64(c.For/2))))
	return probe.Options{For: c.For, Share: share, Window: window}, nil
}

func countOwners(n int) string {
	if n == 1 {
		return "1 owner"
	}
	return fmt.Sprintf("%d owners", n)
}

// BudgetError says that timing calls for a tenth of the time would cost more than it
// may.
type BudgetError struct {
	Owners      int
	Share, Most float64 // of the program's CPU, what it would take and may take
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("timing calls of %s for a tenth of the time would take %s of the process's CPU, more than %s",
		countOwners(e.Owners), unit.Format(e.Share, unit.Share), unit.Format(e.Most, unit.Share))
}

// Fits is of how many of the owners calls could be timed.
func (e *BudgetError) Fits() int { return int(float64(e.Owners) * e.Most / e.Share) }
