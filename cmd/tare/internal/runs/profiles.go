package runs

import (
	"slices"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// CountProfiles says what became of the profiles that are to explain a run's differences.
func CountProfiles(run *record.Run) comment.Profiles {
	m := &run.Manifest
	p := comment.Profiles{}
	left := 0
	for _, c := range m.Study.Captures(m.Seed) {
		if c.Source == study.Trace {
			continue // which has no owners' CPU
		}
		p.Planned++
		of := func(taken record.Capture) bool { return taken.Arm == c.Arm && slices.Contains(taken.Sources, c.Source) }
		taken := slices.IndexFunc(run.Captures, func(taken record.Capture) bool {
			return of(taken) && taken.Round == c.Round && taken.Workload == c.Workload
		})
		switch {
		case taken >= 0 && len(run.Captures[taken].Invalid) == 0:
			p.Usable++
		case taken < 0 && !slices.ContainsFunc(run.Captures, func(taken record.Capture) bool { return of(taken) && len(taken.Invalid) > 0 }):
			left++ // else its source cannot look at that arm
		}
	}
	if lost := explainLost(run, "", ""); len(lost) > 0 {
		p.Lost = lost[0]
	}
	if left > 0 && m.Outcome != "" && m.Outcome != "interrupted" {
		p.Budget = budgetFor(run)
	}
	return p
}

// budgetFor is a budget in which a run has time for its first look and for all captures
// after it, by how long its trials took from start to start: a multiple of 10 s.
func budgetFor(run *record.Run) time.Duration {
	s := &run.Manifest.Study
	overhead := lab.Overhead
	var apart []time.Duration
	for i := 1; i < len(run.Trials); i++ {
		apart = append(apart, run.Trials[i].Start.Sub(run.Trials[i-1].Start))
	}
	if len(apart) > 0 {
		slices.Sort(apart)
		overhead = max(overhead, apart[len(apart)/2]-study.Estimate(s, 1, 0)/time.Duration(s.CellsPerBlock()))
	}
	starts := len(s.Captures(run.Manifest.Seed))
	for _, w := range s.Workloads {
		starts += len(s.ArmsOf(w))
	}
	needed := study.Estimate(s, lab.Looks(s, 0)[0].Blocks, overhead) + lab.Besides(s) + time.Duration(starts)*(overhead-lab.Overhead)
	const step = 10 * time.Second
	return (needed + needed/10 + step).Truncate(step)
}
