package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// tooSlow ends a run whose response times got out of bounds.
type tooSlow struct {
	p99, bound time.Duration
	stuck      uint64        // if not 0: of so many requests, none of which was answered
	over       time.Duration // for so long
}

func (e *tooSlow) Error() string {
	if e.stuck > 0 {
		return fmt.Sprintf("%d of the requests in flight had no answer for %s, more than %s", e.stuck, unit.Format(float64(e.over), unit.Nanoseconds), unit.Format(float64(e.bound), unit.Nanoseconds))
	}
	return fmt.Sprintf("p99 of the last second is %s, more than %s", unit.Format(float64(e.p99), unit.Nanoseconds), unit.Format(float64(e.bound), unit.Nanoseconds))
}

// answers is what was seen of a service's answers until some moment, by who loads
// it or by who only watches.
type answers struct {
	at     time.Duration // since it began; less than 0 during a warm-up
	times  *hist.Hist    // response times
	flight uint64        // requests in flight then
	ended  uint64        // requests that had ended
}

// guard ends a run when the p99 of about a second of answers exceeds a bound.
type guard struct {
	bound time.Duration // 0: not known before the first second is over
	stop  context.CancelCauseFunc
	last  answers // where the second began; no times: nowhere yet
}

// What response times may come to where nobody says: so many times the p99 of the
// first second, when nothing is slowed down yet, but no less than a time that any
// service has now and then.
const (
	worse      = 10
	leastBound = 100 * time.Millisecond
)

func (g *guard) look(a answers) {
	if g.last.times == nil {
		g.since(a)
		return
	}
	over := a.at - g.last.at
	if over < time.Second {
		return
	}
	const enough = 100
	recent := a.times.Clone()
	if err := recent.Sub(g.last.times); err != nil {
		return // what was seen began anew
	}
	if recent.Count() < enough {
		// Of a service that stalls there are few answers, or none. Of the requests
		// that were in flight those without an answer have waited all the while.
		if now := a.ended - g.last.ended; g.bound > 0 && over > g.bound && 100*now < 99*g.last.flight {
			g.end(&tooSlow{bound: g.bound, stuck: g.last.flight - now, over: over})
		}
		return // a second is too short
	}
	g.since(a)
	p99 := time.Duration(recent.Quantile(0.99))
	switch {
	case g.bound == 0:
		g.bound = max(leastBound, worse*p99)
	case p99 > g.bound:
		g.end(&tooSlow{p99: p99, bound: g.bound})
	}
}

// since has the next look begin at a.
func (g *guard) since(a answers) {
	g.last = a
	g.last.times = a.times.Clone()
}

// end ends the run.
func (g *guard) end(e *tooSlow) { g.stop(&cli.Failure{Status: cli.ExitThreshold, Err: e}) }
