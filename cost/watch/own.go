package watch

import "time"

// meter says what this process uses.
type meter struct {
	at  time.Time
	cpu time.Duration
}

// since is the CPU that this process used since the last time, as a share of one core, and
// the memory that it has now, in bytes.
func (m *meter) since(now time.Time) (share float64, memory uint64) {
	cpu, memory := usage()
	if !m.at.IsZero() && now.After(m.at) {
		share = (cpu - m.cpu).Seconds() / now.Sub(m.at).Seconds()
	}
	m.at, m.cpu = now, cpu
	return share, memory
}

// throttle halves what is sampled and counted while watching takes more than it may.
type throttle struct {
	budget       float64
	level        int // how often it was halved
	seen         int // intervals; the first has the cost of beginning in it
	above, below int // in a row
}

// Bounds of a throttle: how often it halves, how many intervals in a row have to be above
// the budget for that, and how many have to be below a third of it for the way back.
const (
	mostHalved = 4
	rowAbove   = 3
	rowBelow   = 30
)

// note takes what watching took in an interval. It reports whether the level has changed.
func (t *throttle) note(share float64) bool {
	t.seen++
	switch {
	case t.seen == 1:
		return false
	case share > t.budget:
		t.above, t.below = t.above+1, 0
	case share < t.budget/3:
		t.above, t.below = 0, t.below+1
	default:
		t.above, t.below = 0, 0
	}
	switch {
	case t.above >= rowAbove && t.level < mostHalved:
		t.level++
	case t.below >= rowBelow && t.level > 0:
		t.level--
	default:
		return false
	}
	t.seen, t.above, t.below = 0, 0, 0
	return true
}

// hz is the rate of the moment.
func (t *throttle) hz(full int) int { return max(1, full>>t.level) }

// counts reports whether requests are counted in the next interval: in one of six, and in
// fewer once the rate was halved. Placing a probe costs more than what it counts.
func (t *throttle) counts() bool {
	const one = 6
	return t.seen%(one<<t.level) == 0
}
