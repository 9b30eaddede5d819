package exectrace

import (
	"slices"
	"strings"

	"golang.org/x/exp/trace"

	"github.com/tarehq/tare/cost"
)

// profiling is what the functions begin with that serve profiles and traces.
const profiling = "net/http/pprof."

// A probe is a request for a profile or a trace. It is whoever looks on who sent
// it: it does not count. Most are told by where their own goroutines are seen. If
// a middleware hands requests to goroutines that it starts, a probe that began
// before the trace, as the trace's own did, has one that nobody saw being started:
// a stray. Whose that is, is told by whom it wakes in the end or, if it outlasts
// the trace, by the code that it came from.

// probe notes whether a request's goroutine was seen to serve a probe.
func (g *goroutine) probe(next *site) {
	if g.at.probes() || next.probes() || slices.ContainsFunc(g.samples, (*site).probes) {
		g.request.probe = true
	}
}

func (s *site) probes() bool { return s != nil && s.probed }

// stray takes note of a goroutine that serves a probe, nobody knows whose.
func (t *tracker) stray(g *goroutine, at *site) {
	if at.probes() && !at.server && g.request == nil && g.stage == strange {
		t.strays[g.id] = at
	}
}

// claim has the request of a goroutine that a stray wakes be a probe, if it may
// have started the stray.
func (t *tracker) claim(g, waker *goroutine) {
	if waker == nil || g.request == nil || !g.unborn {
		return
	}
	if at := t.strays[waker.id]; at != nil && g.at != nil && kinship(g.at, at) > 0 {
		g.request.probe = true
		delete(t.strays, waker.id)
	}
}

// adopt has those requests be probes whose strays are under way at the trace's
// end: of the goroutines, that have waited since before the trace, the likeliest.
func (t *tracker) adopt(ids []trace.GoID) {
	for _, at := range t.strays {
		var parent *goroutine
		likeliest := 0
		for _, id := range ids {
			g := t.goroutines[id]
			if !g.unborn || g.request.probe || g.state == Running || g.at == nil {
				continue
			}
			// Of several that wait at the same place the youngest is taken.
			if k := kinship(g.at, at); k > 0 && k >= likeliest {
				parent, likeliest = g, k
			}
		}
		if parent != nil {
			parent.request.probe = true
		}
	}
}

// kinship tells how likely a goroutine that waits started the one at another site:
// 2 if a function literal of its own leads there, 1 if its own package does, else 0.
func kinship(waits, stray *site) int {
	outer := stray.frames[findOutermost(stray.frames, profiling)+1:]
	literal := func(f cost.Frame) bool {
		return slices.ContainsFunc(waits.frames, func(w cost.Frame) bool { return strings.HasPrefix(f.Func, w.Func+".") })
	}
	pkg := packageOf(waits.label.at)
	switch {
	case slices.ContainsFunc(outer, literal):
		return 2
	case slices.ContainsFunc(outer, func(f cost.Frame) bool { return packageOf(f.Func) == pkg }):
		return 1
	}
	return 0
}

// packageOf cuts a function's name off behind its package's path.
func packageOf(fn string) string {
	base := strings.LastIndexByte(fn, '/') + 1
	name, _, _ := strings.Cut(fn[base:], ".")
	return fn[:base] + name
}
