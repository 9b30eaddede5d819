package probe

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost/bpf/probe/site"
)

// route is how one call of an owner came about: where it and its callers return
// to, as link-time addresses, the innermost first.
type route struct {
	owner int
	rets  []uint64
}

// mark is a probe that runs once a call has returned.
type mark struct {
	site  uint64 // link-time address
	delta uint64 // bytes from SP there to SP at its function's beginning
}

// program is what planning needs to know of a program.
type program interface {
	// code returns the machine code from an address to the end of its function.
	code(pc uint64) []byte
	// function returns the name of the function that an address lies in.
	function(pc uint64) string
	// delta returns the bytes between SP and the return address.
	delta(pc uint64) (int, bool)
	// literals returns where the pushes are of the functions that are called next
	// when calls of a function have returned, as far as its name tells: its own
	// function literals, which it may have deferred.
	literals(fn string) []uint64
}

// plan is where marks go.
type plan struct {
	marks   []mark
	ends    map[mark][]int // the owners whose calls a mark may end
	callers []uint64       // return addresses of the owners' calls that end at a mark
	blurred map[int]blur   // owners whose end may be seen late
}

// blur is why the end of calls is seen late, if it is seen at a mark; with no
// mark it is not seen at all.
type blur struct {
	why string
	at  mark
}

// newPlan places the marks that end the calls of which routes were seen.
func newPlan(routes []route, p program) plan {
	made := plan{ends: map[mark][]int{}, blurred: map[int]blur{}}
	for _, r := range routes {
		if len(r.rets) == 0 {
			continue
		}
		m, why, ok := nearest(r.rets, p)
		if why != "" {
			made.blurred[r.owner] = blur{why, m}
		}
		if !ok {
			continue
		}
		made.add(m, r.owner)
		if why != "" {
			for _, push := range p.literals(p.function(m.site)) {
				made.add(mark{push, inward}, r.owner)
			}
		}
		if !slices.Contains(made.callers, r.rets[0]) {
			made.callers = append(made.callers, r.rets[0])
		}
	}
	slices.Sort(made.callers)
	slices.SortFunc(made.marks, func(a, b mark) int { return cmp.Compare(a.site, b.site) })
	return made
}

// inward is the delta of a mark on a function's own push: whatever began at its
// depth or deeper is over when it begins.
const inward = 8

func (p *plan) add(m mark, owner int) {
	if !slices.Contains(p.marks, m) {
		p.marks = append(p.marks, m)
	}
	if !slices.Contains(p.ends[m], owner) {
		p.ends[m] = append(p.ends[m], owner)
	}
}

// idle reports whether a mark costs hits for nothing: of the calls that it may end there
// were some, and it has ended none. Where requests pass that call none of its owners, as
// in a router for one that is seldom called, hits alone say nothing, until there are so
// many that they cost what the watching may.
func idle(hits, closed, calls uint64) bool {
	const patience, enough, most = 100, 10, 20_000
	return closed == 0 && hits > patience && (calls >= enough || hits > most)
}

// nearest finds the mark nearest to where a call returns, and says why it is not
// near enough.
func nearest(rets []uint64, p program) (m mark, why string, ok bool) {
	for _, pc := range rets {
		fn := p.function(pc)
		if fn == "" || strings.HasPrefix(fn, "runtime.") {
			// The runtime's own frames may run on another stack.
			why = cmp.Or(why, "it is called through "+cmp.Or(fn, "code that has no name"))
			continue
		}
		at, end := site.After(p.code(pc))
		switch end {
		case site.Returned:
			continue
		case site.Unknown:
			why = cmp.Or(why, fn+", which calls it, does more afterwards than can be followed")
			continue
		case site.Late:
			why = cmp.Or(why, fn+", which calls it, calls something else before a probe can be placed")
		}
		probed := pc + uint64(at)
		delta, known := p.delta(probed)
		if !known || delta < 0 {
			continue
		}
		return mark{probed, uint64(delta)}, why, true
	}
	return mark{}, cmp.Or(why, "nothing that calls it has an instruction to probe afterwards"), false
}
