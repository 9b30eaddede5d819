package exectrace

import (
	"golang.org/x/exp/trace"
)

// move follows a goroutine from one state to another.
func (t *tracker) move(ev trace.Event) {
	change := ev.StateTransition()
	id := change.Resource.Goroutine()
	from, to := change.Goroutine()
	g := t.goroutines[id]
	if from == trace.GoNotExist {
		t.start(id, ev)
		return
	}
	if g == nil {
		g = &goroutine{id: id, since: t.first}
		t.goroutines[id] = g
		at := t.sites.of(change.Stack, nil)
		t.meet(g, to, at)
		t.stray(g, at)
		return
	}
	at := t.sites.of(change.Stack, g.born)
	if from == to { // a new generation of the trace says how things stand
		if g.at == nil {
			g.at = at
		}
		return
	}
	switch {
	case to == trace.GoNotExist:
		t.record(g, nil, nil)
		t.end(g)
		if g.stage == strange && g.request != nil {
			g.request.goroutines--
		}
		delete(t.goroutines, id)
		delete(t.strays, id)
		return
	case from == trace.GoWaiting:
		t.wake(g, ev)
	case from == trace.GoRunning:
		t.halt(g, change, at)
	default:
		t.record(g, nil, nil)
	}
	if at != nil {
		g.at = at
	}
	t.stray(g, at)
	g.state, g.since, g.samples = settled(to, change.Reason, g.at), t.last, nil
}

// meet takes up a goroutine that was there before the trace, and has been as it is
// since then: the first that happens to it is the first that is told.
func (t *tracker) meet(g *goroutine, to trace.GoState, at *site) {
	g.at = at
	g.state = settled(to, "", at)
	if at == nil || !at.server {
		return
	}
	switch at.phase {
	case handling, finishing:
		t.open(g, t.first)
		g.stage, g.unborn = busy, true
	case between, queueing:
		g.stage = idle
	default:
		g.stage = away
	}
}

// start takes up a goroutine that begins.
func (t *tracker) start(id trace.GoID, ev trace.Event) {
	entry := t.sites.of(ev.StateTransition().Stack, nil)
	g := &goroutine{id: id, state: Runnable, since: t.last, at: entry}
	t.goroutines[id] = g
	p := t.goroutines[ev.Goroutine()]
	within := p != nil && p.request != nil
	// Behind net/http gRPC starts one for what a request of net/http's asks for.
	further := within && p.stage != maybe && entry != nil && entry.phase == handling
	if entry == nil || !entry.server || further {
		if within && !p.request.over && p.request.goroutines < maxPieces {
			p.request.goroutines++
			g.request, g.born = p.request, t.sites.of(ev.Stack(), p.born)
			g.at = t.sites.of(ev.StateTransition().Stack, g.born)
		}
		return
	}
	switch entry.phase {
	case handling: // one request of HTTP/2
		t.open(g, t.last)
		g.stage = busy
	case queueing:
		g.stage = away
	default:
		t.open(g, t.last)
		g.stage = maybe
	}
}

// halt ends a stretch of running, at the place where the goroutine leaves off.
func (t *tracker) halt(g *goroutine, change trace.StateTransition, at *site) {
	_, to := change.Goroutine()
	stopped := to == trace.GoRunnable && at != nil
	defer func() { g.stopped = stopped }()
	if stopped {
		g.samples = append(g.samples, at) // it was stopped in the middle of it
	}
	if at != nil && at.phase == handling && g.stage == busy && g.at != nil && g.at.phase == finishing {
		t.finish(g, g.since, false) // the next was there already
		t.open(g, g.since)
	}
	t.record(g, at, nil)
	if at != nil && !at.server && g.stage == maybe && g.unborn {
		t.drop(g) // it was woken, but serves nobody
		g.stage = strange
	}
	if at == nil || !at.server || g.stage == given || g.stage == strange && g.request != nil {
		return
	}
	switch at.phase {
	case handling, finishing:
		t.confirm(g, at)
	case surrender:
		t.confirm(g, at)
		t.finish(g, t.last, false)
		g.stage = given
	case queueing:
		if g.stage == maybe { // whoever woke it has handed it a request
			g.stage = busy
		}
		t.lookAround(g, to)
	case between:
		t.lookAround(g, to)
	case reading:
		t.readOn(g, to)
	case outside:
		t.end(g)
		g.stage = away
	}
}

// confirm makes sure that there is a request: one that nothing announced begins
// with the stretch of running that led here.
func (t *tracker) confirm(g *goroutine, at *site) {
	if g.request == nil {
		unborn := g.stage == strange
		t.open(g, g.since)
		t.record(g, at, nil)
		g.unborn = unborn
	}
	g.stage = busy
}

// lookAround is when a connection's goroutine looks, or waits, for the next
// request: the last one is over.
func (t *tracker) lookAround(g *goroutine, to trace.GoState) {
	switch {
	case g.stage == busy:
		t.finish(g, t.last, false)
		g.stage = away
	case g.stage == maybe && to == trace.GoWaiting:
		t.drop(g)
	case g.stage == maybe:
		g.unborn = false // it was woken to read: here it begins
		return
	}
	switch to {
	case trace.GoWaiting:
		g.stage = idle
	case trace.GoSyscall: // it tries to read before it waits
		t.open(g, t.last)
		g.stage, g.woken, g.unborn = maybe, false, false
	}
}

// readOn is when a request's head is read, which the first request of a
// connection begins with.
func (t *tracker) readOn(g *goroutine, to trace.GoState) {
	switch {
	case to == trace.GoWaiting && g.stage != busy && !(g.stage == maybe && g.woken && !g.unborn):
		t.drop(g)
		g.stage = idle
	case g.stage == maybe:
		g.unborn = false
	case g.stage != busy:
		t.open(g, t.last)
		g.stage, g.woken, g.unborn = maybe, false, false
	}
}

// wake ends a wait. If a goroutine ended it that was started for the same request,
// what that one was at explains it.
func (t *tracker) wake(g *goroutine, ev trace.Event) {
	var by *site
	waker := t.goroutines[ev.Goroutine()]
	if waker != nil && waker != g && g.request != nil && (g.state == Locked || g.state == Channel || g.state == Calling) {
		if waker.request == g.request {
			t.follow(g, waker, t.sites.of(ev.Stack(), waker.born))
			return
		}
		by = t.sites.of(ev.Stack(), waker.born)
	}
	t.record(g, nil, by)
	switch {
	case g.stage == idle || g.stage == away:
		t.open(g, t.last)
		g.woken = g.stage == idle
		g.stage = maybe
	case g.stage == strange && g.at == nil && g.request == nil:
		// It waited since before the trace, nobody knows where. If it is a
		// connection's, a request begins or goes on.
		t.open(g, t.last)
		g.stage, g.woken, g.unborn = maybe, true, true
	}
	t.claim(g, waker)
}

// follow puts what the waker was at in the place of a wait.
func (t *tracker) follow(g, waker *goroutine, at *site) {
	from := max(g.since, g.begin)
	end := from
	add := func(p piece) {
		if p.begin > end { // it was started, or noted, only later
			g.past.add(piece{begin: end, end: p.begin, state: g.state, at: g.at})
		}
		p.elsewhere = true
		g.past.add(p)
		end = p.end
	}
	for _, p := range waker.past.since(from) {
		add(p)
	}
	running := piece{begin: max(waker.since, end), end: t.last, state: waker.activity(), at: t.running(waker, at)}
	if running.begin < running.end {
		add(running)
	}
}
