//go:build linux && (amd64 || arm64)

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/loglinear"
)

// Run watches until the time is over or the context is done; what was seen until
// then is returned in either case. Probes are attached for a window at a time:
// between windows, marks are placed for callers that showed up meanwhile, and
// marks at which no call ever ended are taken away.
func (w *Watch) Run(ctx context.Context, o Options) (*Measurement, error) {
	if o.Window <= 0 {
		o.Window = time.Second
	}
	if o.Share <= 0 || o.Share > 1 {
		o.Share = 1
	}
	o.Window = min(o.Window, o.For)
	m := &Measurement{}
	var p plan
	for begun := time.Now(); time.Since(begun) < o.For; {
		p = newPlan(w.routes, w.t)
		err := w.window(ctx, p, o.Window, m)
		if ctx.Err() == nil && errors.Is(err, errGone) {
			m.Warnings = append(m.Warnings, fmt.Errorf("watching ended early: %w", err))
			break
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		off := time.Duration(float64(o.Window) * (1/o.Share - 1))
		if time.Since(begun)+off >= o.For || sleep(ctx, off) != nil {
			break
		}
	}
	if m.Attached == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("watching process %d: %w", w.t.pid, errGone)
	}
	return m, w.sum(m, p)
}

// window attaches all probes, and counts for a while.
func (w *Watch) window(ctx context.Context, p plan, d time.Duration, m *Measurement) error {
	if err := w.attach(p); err != nil {
		return err
	}
	defer w.d.detach()
	begun, before, err := w.d.clock()
	if err != nil {
		return err
	}
	if err := w.d.begin(d); err != nil {
		return err
	}
	sleep(ctx, d) // what was seen until the context is done counts
	if err := w.d.end(); err != nil {
		return err
	}
	// A process that has ended was watched until then.
	ended, after, err := w.d.clock()
	m.Attached += ended.Sub(begun)
	if err != nil {
		return err
	}
	m.CPU += after - before
	if err := w.d.detach(); err != nil {
		return err
	}
	return w.learn()
}

// attach places marks, then the probes on beginnings.
func (w *Watch) attach(p plan) error {
	if err := w.putCallers(p.callers); err != nil {
		return err
	}
	addrs, cookies, err := w.number(p)
	if err != nil {
		return err
	}
	if err := w.d.attach(w.d.Leave, addrs, cookies); err != nil {
		return err
	}
	addrs, cookies = w.entries()
	return w.d.attach(w.d.Enter, addrs, cookies)
}

// number gives marks their numbers, which they keep, and returns their addresses
// and cookies. Those that were hit but ended nothing are left out.
func (w *Watch) number(p plan) (addrs, cookies []uint64, err error) {
	entered := make([]uint64, len(w.owners)+1)
	for i := range entered {
		t, err := w.d.tallied(i)
		if err != nil {
			return nil, nil, err
		}
		entered[i] = t.Entered
	}
	for _, m := range p.marks {
		id := slices.Index(w.marks, m)
		if id < 0 {
			if len(w.marks) == maxMarks {
				continue
			}
			id = len(w.marks)
			w.marks = append(w.marks, m)
		}
		var calls uint64
		for _, o := range p.ends[m] {
			since, known := w.placed[placed{id, o}]
			if !known {
				since = entered[o]
				w.placed[placed{id, o}] = since
			}
			calls += entered[o] - since
		}
		seen, err := w.d.marked(id)
		if err != nil {
			return nil, nil, err
		}
		if idle(seen.Hits, seen.Closed, calls) {
			continue
		}
		addrs = append(addrs, m.site)
		cookies = append(cookies, uint64(id)|m.delta<<32)
	}
	return addrs, cookies, nil
}

// placed is a mark by its number, and an owner whose calls it may end.
type placed struct{ mark, owner int }

// sum reads what the programs have counted.
func (w *Watch) sum(m *Measurement, p plan) error {
	m.Marks = len(p.marks)
	for id := range w.marks {
		seen, err := w.d.marked(id)
		if err != nil {
			return err
		}
		m.Hits += float64(seen.Hits)
	}
	for i, o := range w.owners {
		t, err := w.d.tallied(i)
		if err != nil {
			return err
		}
		m.Hits += float64(t.Entered)
		m.Walls = append(m.Walls, cost.Wall{
			Owner: o.Owner, Calls: float64(t.Entered), Seen: float64(t.Finished),
			Self: float64(t.Self), Total: float64(t.Total),
			P50: loglinear.Quantile(t.Hist[:], 0.5), P99: loglinear.Quantile(t.Hist[:], 0.99),
			Around: o.Around,
		})
		m.Warnings = append(m.Warnings, w.doubts(o, t)...)
		if b, ok := p.blurred[i]; ok && w.closes(b.at) {
			m.Warnings = append(m.Warnings, fmt.Errorf("the end of %s is seen late: %s", o.Owner.Name, b.why))
		} else if t.Strange > t.Entered/20 {
			m.Warnings = append(m.Warnings, fmt.Errorf("of %d calls of %s %d were made by callers that were not known yet: their end may be seen late, and what these do afterwards be in it", t.Entered, o.Owner.Name, t.Strange))
		}
	}
	t, err := w.d.tallied(len(w.owners))
	if err != nil {
		return err
	}
	m.Requests = float64(t.Entered)
	m.Hits += m.Requests
	switch {
	case m.Hits > 0:
	case w.looked > 0:
		m.Warnings = append(m.Warnings, errors.New("calls were made before, but none while tare watched: the load has ended, or tare cannot distinguish the program's goroutines"))
	default:
		m.Warnings = append(m.Warnings, errors.New("no request and no call was seen: load the service"))
	}
	for _, o := range w.refuse {
		m.Warnings = append(m.Warnings, refusals([]Watched{o}))
	}
	return nil
}

// closes reports whether calls ended at a mark often enough to matter: one that
// is placed to be late may come after others that are not.
func (w *Watch) closes(m mark) bool {
	id := slices.Index(w.marks, m)
	if id < 0 {
		return true
	}
	seen, err := w.d.marked(id)
	return err != nil || seen.Closed > seen.Hits/20
}

// doubts says what is wrong with what was seen of an owner.
func (w *Watch) doubts(o Watched, t deviceTally) []error {
	var doubts []error
	if lost := t.Entered - min(t.Entered, t.Finished); lost > t.Entered/20 {
		doubts = append(doubts, fmt.Errorf("of %d calls of %s the end of %d was not seen: they went on longer than the window, panicked, or were called in a way not seen before", t.Entered, o.Owner.Name, lost))
	}
	if t.Deep > 0 {
		doubts = append(doubts, fmt.Errorf("%d calls of %s were nested too deep to be timed", t.Deep, o.Owner.Name))
	}
	return doubts
}
