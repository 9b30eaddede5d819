package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/tally"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// captured are the captures that tell CPU time, by cell and round: rounds are to
// captures what blocks are to trials.
func captured(all []record.Capture) trials {
	by := trials{}
	for _, c := range all {
		if len(c.Invalid) > 0 || len(c.Metrics) == 0 || blind(&c) != "" {
			continue
		}
		at := cell{c.Workload, c.Arm, false}
		if by[at] == nil {
			by[at] = map[int]record.Trial{}
		}
		if _, ok := by[at][c.Round]; ok && !slices.Contains(c.Sources, study.EBPF) {
			continue // the kernel's samples tell first: of an arm that often idles, the runtime's profile misses most
		}
		by[at][c.Round] = record.Trial{Block: c.Round, Arm: c.Arm, Workload: c.Workload, Requests: c.Requests, Metrics: c.Metrics}
	}
	return by
}

// leastSeen is the share of the CPU time that a profile must have seen for metrics to be
// made of it: of less, some ten stacks stand for all of a process.
const leastSeen = 0.5

// blind says that a source saw too little for metrics, or "".
func blind(c *record.Capture) string {
	for _, s := range c.Seen {
		if s.Share > 0 && s.Share < leastSeen {
			return fmt.Sprintf("%s saw %s of the CPU time, less than half: no metric is made of this capture", s.Source, unit.Format(s.Share, unit.Share))
		}
	}
	return ""
}

// ofRounds is an analyser of captures. Nobody looks at them before all are taken, so their
// intervals have the level of a single look. Those that were cut short may be gone on with.
func (an *analyser) ofRounds(all []record.Capture) *analyser {
	look, taken := stats.Look{Blocks: an.study.Attribute.RepeatOr(), Alpha: stats.StudyAlpha}, 0
	for _, c := range all {
		taken = max(taken, c.Round+1)
	}
	return &analyser{study: an.study, manifest: an.manifest, looks: []stats.Look{look}, begun: look.Blocks, valid: captured(all), peeking: an.peeking || taken < look.Blocks}
}

// basis is a workload of which nothing is known but its blocks and their level.
func (an *analyser) basis(w study.Workload) Workload {
	out := Workload{Workload: w}
	control := cell{w.Name, an.study.Control, false}
	for _, arm := range an.study.ArmsOf(w) {
		if arm.Name != an.study.Control {
			out.Blocks = max(out.Blocks, an.valid.shared(cell{w.Name, arm.Name, false}, control))
		}
	}
	out.Blocks = max(out.Blocks, an.valid.shared(control.asTwin(), control))
	out.Alpha, out.Anytime = lookAt(an.looks, an.begun).Alpha, an.peeking
	if an.peeking {
		out.Alpha = stats.StudyAlpha // anytime intervals take no share of it
	}
	return out
}

// lost are the captures that do not count, by arm and reason, and what those
// that do warn of.
func lost(all []record.Capture) []error {
	var said []string
	for _, c := range all {
		for _, why := range c.Invalid {
			said = append(said, c.Arm+": a capture does not count: "+why)
		}
		for _, why := range c.Warnings {
			said = append(said, c.Arm+": "+why)
		}
		if why := blind(&c); why != "" {
			said = append(said, c.Arm+": "+why)
		}
	}
	var ws []error
	for _, w := range tally.Count(said) {
		text := w.Text
		if w.N > 1 {
			text += fmt.Sprintf(" (the first of %d)", w.N)
		}
		ws = append(ws, fmt.Errorf("%s", text))
	}
	return ws
}

// byRound sorts an arm's captures under a workload in which a source looked.
func byRound(all []record.Capture, workload, arm string, source study.Source) []sighting {
	var looks []sighting
	for i := range all {
		c := &all[i]
		if c.Workload != workload || c.Arm != arm || len(c.Invalid) > 0 {
			continue
		}
		for k := range c.Seen {
			if s := &c.Seen[k]; s.Source == source && s.Bill != nil {
				looks = append(looks, sighting{c, s})
			}
		}
	}
	slices.SortStableFunc(looks, func(a, b sighting) int { return cmp.Compare(a.Round, b.Round) })
	return looks
}

// sighting is what one source saw in one capture.
type sighting struct {
	*record.Capture
	seen *record.Seen
}
