package exectrace

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/exp/trace"

	"github.com/tarehq/tare/cost"
)

// tracker follows goroutines through a trace and finds the requests.
type tracker struct {
	sites       *sites
	goroutines  map[trace.GoID]*goroutine
	first, last trace.Time
	begun       bool
	marking     meter // the collector marks
	stopped     meter // the world is stopped
	tally       tally
	strays      map[trace.GoID]*site // goroutines that serve a probe, nobody knows whose
}

func newTracker(o Options) *tracker {
	s := newSites(o.Rules)
	return &tracker{sites: s, goroutines: map[trace.GoID]*goroutine{}, tally: newTally(o, s), strays: map[trace.GoID]*site{}}
}

// meter adds up how long something was so.
type meter struct {
	depth int
	since trace.Time
	sum   int64
}

func (m *meter) on(t trace.Time) {
	if m.depth++; m.depth == 1 {
		m.since = t
	}
}

func (m *meter) off(t trace.Time) {
	if m.depth == 0 {
		return // it began before the trace
	}
	if m.depth--; m.depth == 0 {
		m.sum += int64(t - m.since)
	}
}

// at reads the meter, at a time since which nothing has changed it, or soon after.
func (m *meter) at(t trace.Time) int64 {
	if m.depth > 0 && t > m.since {
		return m.sum + int64(t-m.since)
	}
	return m.sum
}

// take notes what an event says.
func (t *tracker) take(ev trace.Event) {
	if !t.begun {
		t.begun, t.first = true, ev.Time()
	}
	t.last = ev.Time()
	switch ev.Kind() {
	case trace.EventSync:
		t.sites.generation()
	case trace.EventStateTransition:
		if ev.StateTransition().Resource.Kind == trace.ResourceGoroutine {
			t.move(ev)
		}
	case trace.EventStackSample:
		if g := t.goroutines[ev.Goroutine()]; g != nil && g.state == Running && g.request != nil {
			if at := t.sites.of(ev.Stack(), g.born); at != nil && len(g.samples) < maxPieces/4 {
				g.samples = append(g.samples, at)
			}
		}
	case trace.EventRangeBegin, trace.EventRangeActive:
		t.enter(ev)
	case trace.EventRangeEnd:
		t.leave(ev)
	case trace.EventLog:
		t.note(ev)
	}
}

// note takes in what a program writes into its trace.
func (t *tracker) note(ev trace.Event) {
	g := t.goroutines[ev.Goroutine()]
	switch {
	case g == nil:
	case ev.Log().Category == announcement:
		t.announce(g, t.sites.of(ev.Stack(), g.born))
	case g.request != nil:
		g.request.log = ev.Log().Message
	}
}

// announce is when the engine says that it has a request's head: the last request
// is over. This one may have been seen to begin, when its first bytes came.
func (t *tracker) announce(g *goroutine, at *site) {
	if at == nil || !at.server || g.stage == given {
		return
	}
	t.record(g, at, nil)
	if g.stage == busy && (g.request.announced || g.unborn) {
		t.finish(g, t.last, false)
	}
	if g.request == nil {
		t.open(g, t.last)
	}
	g.request.announced = true
	g.stage, g.since, g.at, g.unborn, g.stopped = busy, t.last, at, false, false
}

// enter begins a range: of the collector, or of a goroutine that helps it. A range
// said to be active may have been known already.
func (t *tracker) enter(ev trace.Event) {
	r := ev.Range()
	active := ev.Kind() == trace.EventRangeActive
	switch {
	case r.Name == "GC concurrent mark phase":
		if !active || t.marking.depth == 0 {
			t.marking.on(t.last)
		}
	case strings.HasPrefix(r.Name, "stop-the-world"):
		if !active || t.stopped.depth == 0 {
			t.stopped.on(t.last)
		}
	case r.Name == "GC mark assist" && r.Scope.Kind == trace.ResourceGoroutine:
		g := t.goroutines[r.Scope.Goroutine()]
		if g == nil || active && g.assists > 0 {
			return
		}
		if g.assists == 0 {
			at := t.sites.of(ev.Stack(), g.born)
			t.record(g, at, nil)
			g.since = t.last
			if at != nil {
				g.at = at
			}
		}
		g.assists++
	}
}

func (t *tracker) leave(ev trace.Event) {
	switch r := ev.Range(); {
	case r.Name == "GC concurrent mark phase":
		t.marking.off(t.last)
	case strings.HasPrefix(r.Name, "stop-the-world"):
		t.stopped.off(t.last)
	case r.Name == "GC mark assist" && r.Scope.Kind == trace.ResourceGoroutine:
		g := t.goroutines[r.Scope.Goroutine()]
		if g == nil || g.assists == 0 {
			return
		}
		if g.assists == 1 {
			t.record(g, g.at, nil)
			g.since = t.last
		}
		g.assists--
	}
}

// activity is the goroutine's state, helping the collector told from running.
func (g *goroutine) activity() State {
	if g.state == Running && g.assists > 0 {
		return Collecting
	}
	return g.state
}

// record notes how the goroutine spent its time since the last event, if that
// matters to a request. next is where it left off running, by who ended a wait.
func (t *tracker) record(g *goroutine, next, by *site) {
	if g.request == nil {
		return
	}
	if g.request.over { // whatever was started for it goes on for nobody
		g.request, g.past = nil, nil
		return
	}
	g.probe(next)
	p := piece{begin: max(g.since, g.begin), end: t.last, state: g.activity(), at: g.at, by: by}
	if g.state != Running {
		g.past.add(p)
		return
	}
	if len(g.samples) == 0 {
		p.at = t.running(g, next)
		g.past.add(p)
		return
	}
	// Each stack seen stands for an equal part.
	n := trace.Time(len(g.samples))
	begin, span := p.begin, p.end-p.begin
	for i, at := range g.samples {
		p.at, p.begin, p.end = at, begin+span*trace.Time(i)/n, begin+span*trace.Time(i+1)/n
		g.past.add(p)
	}
	g.samples = nil
}

// running says where a goroutine ran that nobody saw running: it is known if what
// was before and what came after are the same owner's, and nothing else can have
// been between.
func (t *tracker) running(g *goroutine, next *site) *site {
	if len(g.samples) > 0 {
		return g.samples[len(g.samples)-1]
	}
	if g.stopped {
		return g.at // and went on there
	}
	if g.at == nil || next == nil || g.at.label.owner != next.label.owner {
		return nil
	}
	if kind := next.label.owner.Kind; !next.server || kind == cost.Handler || kind == cost.Client {
		return next
	}
	if g.at.phase == next.phase && (next.phase == reading || next.phase == finishing) {
		return next
	}
	return nil
}

// open begins a request at a time.
func (t *tracker) open(g *goroutine, at trace.Time) {
	t.drop(g)
	g.begin = at
	g.request = &request{collected: t.marking.at(at), stopped: t.stopped.at(at)}
}

// drop forgets a request that was none.
func (t *tracker) drop(g *goroutine) {
	if g.request != nil {
		g.request.over = true
	}
	g.request, g.past, g.unborn = nil, g.past[:0], false
}

// finish ends a request at a time that is now or was when the goroutine last began
// to run.
func (t *tracker) finish(g *goroutine, end trace.Time, unended bool) {
	if g.request == nil {
		return
	}
	if g.request.probe {
		t.drop(g)
		return
	}
	t.tally.add(&finished{
		goroutine: g.id, begin: g.begin, end: end, past: g.past, log: g.request.log, begun: g.unborn, unended: unended,
		collected: t.marking.at(end) - g.request.collected,
		stopped:   t.stopped.at(end) - g.request.stopped,
	})
	t.drop(g)
}

// end takes leave of a goroutine that ends, or turns to something else.
func (t *tracker) end(g *goroutine) {
	if g.stage == busy {
		t.finish(g, t.last, false)
	}
	if g.stage != strange {
		t.drop(g)
	}
}

// result takes in the requests under way and sums up.
func (t *tracker) result() *Requests {
	ids := make([]trace.GoID, 0, len(t.goroutines))
	for id, g := range t.goroutines {
		if g.stage == busy && g.request != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	t.adopt(ids)
	for _, id := range ids {
		g := t.goroutines[id]
		t.record(g, nil, nil)
		t.finish(g, t.last, true)
	}
	t.tally.first = t.first
	res := t.tally.result()
	res.Duration = t.last.Sub(t.first)
	for _, name := range slices.Sorted(maps.Keys(t.sites.others)) {
		res.Warnings = append(res.Warnings, "requests that "+name+" answers are not found: only those of net/http, tare's serve, fasthttp and gRPC are")
	}
	if res.Count+res.Cut == 0 && len(t.sites.others) == 0 {
		res.Warnings = append(res.Warnings, "no request was seen: the service was idle, or its server is none of net/http, tare's serve, fasthttp and gRPC")
	}
	return res
}
