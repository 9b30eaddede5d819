package whatif

import (
	"context"
	"fmt"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// TooSlow is why a run was stopped: response times exceeded their bound.
type TooSlow struct {
	Bound time.Duration
	P99   time.Duration // of a second's response times; 0: too few requests were answered
	Stuck uint64        // requests in flight without an answer for Over, if P99 is 0
	Over  time.Duration
}

func (e *TooSlow) Error() string {
	span := func(d time.Duration) string { return unit.Format(float64(d), unit.Nanoseconds) }
	if e.Stuck > 0 {
		return fmt.Sprintf("%d of the requests in flight had no answer for %s, more than %s", e.Stuck, span(e.Over), span(e.Bound))
	}
	return fmt.Sprintf("the p99 of the last second is %s, more than %s", span(e.P99), span(e.Bound))
}

// answers is what was seen of a service's answers until some moment.
type answers struct {
	at     time.Duration // since it began; less than 0 during a warm-up
	times  *hist.Hist    // response times
	flight uint64        // requests in flight then
	ended  uint64        // requests that had ended
}

// answersOf returns what a load has seen. Requests that end during its warm-up do not
// count.
func answersOf(s load.Snapshot) answers {
	a := answers{at: s.Elapsed, times: s.Response, flight: uint64(max(0, s.Flight))}
	if s.Elapsed >= 0 {
		a.ended = s.Counts.Answered() + s.Counts.Failed() + s.Counts.Dropped
	}
	return a
}

// guard ends a run when the p99 of about a second of answers exceeds a bound.
type guard struct {
	bound time.Duration // 0: not known before the first second is over
	stop  context.CancelCauseFunc
	last  answers // where the second began; no times: nowhere yet
}

// The bound where nobody gives one: a multiple of the p99 of the first second, when
// nothing is slowed down yet, but no less than a time that any service has now and then.
const (
	boundFactor = 10
	leastBound  = 100 * time.Millisecond
)

// check looks at the answers until now.
func (g *guard) check(a answers) {
	if g.last.times == nil {
		g.beginSecond(a)
		return
	}
	over := a.at - g.last.at
	if over < time.Second {
		return
	}
	const enough = 100
	recent := a.times.Clone()
	if err := recent.Sub(g.last.times); err != nil {
		return // the count began anew
	}
	if recent.Count() < enough {
		// A service that stalls gives few answers, or none. Of the requests that were
		// in flight, those without an answer have waited all the while.
		if now := a.ended - g.last.ended; g.bound > 0 && over > g.bound && 100*now < 99*g.last.flight {
			g.stop(&TooSlow{Bound: g.bound, Stuck: g.last.flight - now, Over: over})
		}
		return // a second is too short
	}
	g.beginSecond(a)
	p99 := time.Duration(recent.Quantile(0.99))
	switch {
	case g.bound == 0:
		g.bound = max(leastBound, boundFactor*p99)
	case p99 > g.bound:
		g.stop(&TooSlow{P99: p99, Bound: g.bound})
	}
}

// beginSecond makes the next check compare with a.
func (g *guard) beginSecond(a answers) {
	g.last = a
	g.last.times = a.times.Clone()
}
