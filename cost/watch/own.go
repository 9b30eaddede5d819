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

// throttle halves what is sampled, and how often it is looked at and summed up, while
// watching takes more than it may.
type throttle struct {
	budget       float64
	level        int // how often it was halved
	seen         int // intervals; the first has the cost of beginning in it
	above, below int // in a row
}

// Bounds of a throttle: how often it halves, how many intervals in a row have to be above
// the budget for that, and how many have to be below a third of it for the way back. Those
// are fewer while intervals are longer.
const (
	mostHalved = 4
	rowAbove   = 3
	rowBelow   = 30

	longest    = 5 * time.Minute // interval that is made longer
	leastCores = 0.2             // that services are taken to use if they use less
)

// note takes what watching took in an interval, and what the services used, as shares of
// one core. It reports whether the level has changed.
func (t *throttle) note(share, services float64) bool {
	allowed := t.budget * max(services, leastCores)
	t.seen++
	switch {
	case t.seen == 1:
		return false
	case share > allowed:
		t.above, t.below = t.above+1, 0
	case share < allowed/3:
		t.above, t.below = 0, t.below+1
	default:
		t.above, t.below = 0, 0
	}
	switch {
	case t.above >= rowAbove && t.level < mostHalved:
		t.level++
	case t.below >= max(rowAbove, rowBelow>>t.level) && t.level > 0:
		t.level--
	default:
		return false
	}
	t.seen, t.above, t.below = 0, 0, 0
	return true
}

// hz is the rate of the moment.
func (t *throttle) hz(full int) int { return max(1, full>>t.level) }

// every is the length of an interval, or the time between two of something else.
func (t *throttle) every(full time.Duration) time.Duration {
	return max(full, min(full<<t.level, longest))
}
