package lab

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// maxAttempts bounds how often in a row cells are run again and gain no pair. A cell that
// stays invalid has fewer blocks, and the report says why.
const maxAttempts = 3

// makeUp runs again, in blocks of their own beside the control, the cells that
// have fewer valid pairs than there are blocks, as far as the budget goes. These few trials
// come before the captures: a look may decide nothing without them.
func (r *runner) makeUp(ctx context.Context, blocks int) error {
	for tried, least := 0, math.MaxInt; ; tried++ {
		cells, pairs := r.missing(blocks)
		if pairs < least {
			tried, least = 0, pairs
		}
		if pairs == 0 || tried == maxAttempts || r.overBudget(len(cells), false) {
			return nil
		}
		r.makingUp = true
		err := r.block(ctx, cells, 1)
		r.makingUp = false
		if err != nil {
			return err
		}
	}
}

// missing are the cells of one make-up block: for every workload the arms that
// lack a valid pair, and the control, in random order; and how many pairs all lack.
func (r *runner) missing(blocks int) (cells []study.Cell, pairs int) {
	rng := rand.New(rand.NewPCG(r.Seed, uint64(r.nextBlock())))
	for _, w := range r.Study.Workloads {
		var group []study.Cell
		for _, a := range r.Study.ArmsOf(w) {
			c := study.Cell{Workload: w.Name, Arm: a.Name, Twin: a.Name == r.Study.Control}
			if n := r.lacks(c, blocks); n > 0 && (!c.Twin || r.Study.Twin) {
				group, pairs = append(group, c), pairs+n
			}
		}
		if len(group) == 0 {
			continue
		}
		group = append(group, study.Cell{Workload: w.Name, Arm: r.Study.Control})
		rng.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
		cells = append(cells, group...)
	}
	return cells, pairs
}

// lacks is how many valid pairs with the control a cell has less than there are blocks. Those
// that the lag voided are not worth another attempt where they are most.
func (r *runner) lacks(c study.Cell, blocks int) int {
	valid, control, lost := map[int]bool{}, map[int]bool{}, map[int]bool{} // blocks with a valid trial of the cell, of the control, and with a voided one
	for _, t := range r.trials {
		isCell, isControl := t.Arm == c.Arm && t.Twin == c.Twin, t.Arm == r.Study.Control && !t.Twin
		switch {
		case t.Workload != c.Workload || len(t.Invalid) > 0 || t.Block < 0 || !isCell && !isControl:
			continue
		case isCell:
			valid[t.Block] = true
		default:
			control[t.Block] = true
		}
		lost[t.Block] = lost[t.Block] || r.voided(&t)
	}
	maps.DeleteFunc(valid, func(b int, _ bool) bool { return !control[b] })
	whole := maps.Clone(valid)
	maps.DeleteFunc(whole, func(b int, _ bool) bool { return lost[b] })
	if 2*len(whole) < len(valid) {
		whole = valid
	}
	return max(0, blocks-len(whole))
}

// voided reports whether a trial lacks, since the generator's lag distorts it, a metric by
// which the study or the headline of a claim decides.
func (r *runner) voided(t *record.Trial) bool {
	p := r.Study.Primary
	checks := []study.Check{{Metric: p.Metric, Workload: p.Workload, Arm: t.Arm}}
	for _, c := range r.Study.Claims {
		checks = append(checks, c.Headline()...)
	}
	return t.Readings != nil && slices.ContainsFunc(checks, func(k study.Check) bool {
		l, ok := t.Readings.Times[k.Metric]
		return ok && l.Late(l.Response) && k.Workload == t.Workload && (t.Arm == k.Arm || t.Arm == cmp.Or(k.Against, r.Study.Control))
	})
}

// attempt is how often the cell was run in make-up blocks: 0 in a planned one.
func (r *runner) attempt(c study.Cell) int {
	if !r.makingUp {
		return 0
	}
	n := 1
	for _, t := range r.trials {
		if t.Arm == c.Arm && t.Workload == c.Workload && t.Twin == c.Twin && t.Attempt > 0 {
			n++
		}
	}
	return n
}
