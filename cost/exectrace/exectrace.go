// Package exectrace reads execution traces of Go programs: what goroutines waited
// for, where, and how long; and what each request's time went into.
package exectrace

import (
	"io"
	"strings"
	"time"

	"golang.org/x/exp/trace"

	"github.com/tarehq/tare/cost"
)

// Trace is what an execution trace says of waiting.
type Trace struct {
	Duration time.Duration
	Waits    []cost.Wait // one for each place and reason
	Broken   error       // says that the trace breaks off before its end, and why; nil if it is whole
}

// Read reads a trace as runtime/trace writes it. What goroutines were at when
// the trace began or ended counts as far as it lies within.
func Read(r io.Reader) (*Trace, error) {
	a := account{sites: newSites(nil), goroutines: map[trace.GoID]spell{}, sums: map[place]*stay{}}
	broken, err := scan(r, a.take)
	if err != nil {
		return nil, err
	}
	t := a.trace()
	t.Broken = broken
	return t, nil
}

// Learn looks through a trace for chains of middlewares that tare does not know, which
// single stacks do not show.
func (t *Trace) Learn() *cost.Rules {
	stacks := make([]cost.Stack, len(t.Waits))
	for i := range t.Waits {
		stacks[i] = t.Waits[i].Stack
	}
	return cost.Learn(stacks)
}

// spell is what a goroutine that does not run is at.
type spell struct {
	since  trace.Time
	at     *site
	reason cost.Reason
}

type place struct {
	at     *site
	reason cost.Reason
}

type stay struct {
	times int
	spent time.Duration
}

type account struct {
	sites       *sites
	first, last trace.Time
	begun       bool
	goroutines  map[trace.GoID]spell
	sums        map[place]*stay
}

// take notes what an event says.
func (a *account) take(ev trace.Event) {
	if !a.begun {
		a.begun, a.first = true, ev.Time()
	}
	a.last = ev.Time()
	if ev.Kind() == trace.EventSync {
		a.sites.generation()
	}
	if ev.Kind() != trace.EventStateTransition {
		return
	}
	t := ev.StateTransition()
	if t.Resource.Kind != trace.ResourceGoroutine {
		return
	}
	id := t.Resource.Goroutine()
	from, to := t.Goroutine()
	was, known := a.goroutines[id]
	if known && from == to {
		return // a new generation of the trace says how things stand
	}
	if known {
		a.charge(was, ev.Time())
		delete(a.goroutines, id)
	}
	now := spell{since: ev.Time(), at: a.sites.of(t.Stack, nil)}
	if from == trace.GoUndetermined {
		now.since = a.first
	}
	switch to {
	case trace.GoWaiting:
		now.reason = reasonOf(t.Reason)
	case trace.GoSyscall:
		now.reason = cost.SystemCall
	case trace.GoRunnable:
		// Whoever is woken waits on at the same place, now for a processor.
		if known && (from == trace.GoWaiting || from == trace.GoSyscall) {
			now.at = was.at
		}
		now.reason = cost.Scheduler
	default:
		return
	}
	if now.at == nil {
		now.at = was.at
	}
	a.goroutines[id] = now
}

// charge adds a wait, unless it is that of whoever looks on: such as for the end of
// this trace.
func (a *account) charge(s spell, until trace.Time) {
	if s.at == nil || s.at.probes() {
		return
	}
	key := place{s.at, s.reason}
	if a.sums[key] == nil {
		a.sums[key] = &stay{}
	}
	a.sums[key].times++
	a.sums[key].spent += until.Sub(s.since)
}

func (a *account) trace() *Trace {
	for _, s := range a.goroutines {
		a.charge(s, a.last)
	}
	t := &Trace{Duration: a.last.Sub(a.first)}
	for key, s := range a.sums {
		t.Waits = append(t.Waits, cost.Wait{
			Reason: key.reason,
			Stack:  cost.Stack{Frames: key.at.frames, Count: float64(s.times), Value: float64(s.spent)},
		})
	}
	return t
}

// reasonOf sorts the runtime's reasons for blocking (runtime/traceruntime.go).
func reasonOf(text string) cost.Reason {
	switch {
	case text == "network":
		return cost.Network
	case text == "sleep":
		return cost.Sleep
	case strings.HasPrefix(text, "sync"):
		return cost.Lock
	case text == "select" || strings.HasPrefix(text, "chan "):
		return cost.Channel
	case strings.Contains(text, "GC"):
		return cost.Collector
	case text == "preempted":
		return cost.Scheduler
	}
	return cost.Elsewhere
}
