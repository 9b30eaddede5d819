// Package exectrace reads execution traces of Go programs: what goroutines
// waited for, where, and how long.
package exectrace

import (
	"errors"
	"fmt"
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
}

// Read reads a trace as runtime/trace writes it. What goroutines were at when
// the trace began or ended counts as far as it lies within.
func Read(r io.Reader) (*Trace, error) {
	in, err := trace.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("reading a trace: %w", err)
	}
	a := account{goroutines: map[trace.GoID]state{}, sums: map[place]*sum{}}
	for {
		ev, err := in.ReadEvent()
		if errors.Is(err, io.EOF) {
			return a.trace(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a trace: %w", err)
		}
		a.take(ev)
	}
}

// state is what a goroutine that does not run is at.
type state struct {
	since  trace.Time
	stack  trace.Stack
	reason cost.Reason
}

type place struct {
	stack  trace.Stack
	reason cost.Reason
}

type sum struct {
	times int
	spent time.Duration
}

type account struct {
	first, last trace.Time
	begun       bool
	goroutines  map[trace.GoID]state
	sums        map[place]*sum
}

// take notes what an event says.
func (a *account) take(ev trace.Event) {
	if !a.begun {
		a.begun, a.first = true, ev.Time()
	}
	a.last = ev.Time()
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
	if known {
		a.charge(was, ev.Time())
		delete(a.goroutines, id)
	}
	now := state{since: ev.Time(), stack: t.Stack}
	switch to {
	case trace.GoWaiting:
		now.reason = reasonOf(t.Reason)
	case trace.GoSyscall:
		now.reason = cost.SystemCall
	case trace.GoRunnable:
		// Whoever is woken waits on at the same place, now for a processor.
		if known && (from == trace.GoWaiting || from == trace.GoSyscall) {
			now.stack = was.stack
		}
		now.reason = cost.Scheduler
	default:
		return
	}
	if now.stack == trace.NoStack {
		now.stack = was.stack
	}
	a.goroutines[id] = now
}

func (a *account) charge(s state, until trace.Time) {
	if s.stack == trace.NoStack {
		return
	}
	at := place{s.stack, s.reason}
	if a.sums[at] == nil {
		a.sums[at] = &sum{}
	}
	a.sums[at].times++
	a.sums[at].spent += until.Sub(s.since)
}

func (a *account) trace() *Trace {
	for _, s := range a.goroutines {
		a.charge(s, a.last)
	}
	t := &Trace{Duration: a.last.Sub(a.first)}
	for at, s := range a.sums {
		w := cost.Wait{Reason: at.reason, Stack: cost.Stack{Count: float64(s.times), Value: float64(s.spent)}}
		for f := range at.stack.Frames() {
			w.Stack.Frames = append(w.Stack.Frames, cost.Frame{Func: f.Func, File: f.File, Line: int(f.Line)})
		}
		t.Waits = append(t.Waits, w)
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
