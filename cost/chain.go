package cost

import (
	"github.com/tarehq/tare/cost/internal/framework"
	"github.com/tarehq/tare/cost/internal/symbol"
	"slices"
	"strconv"
	"strings"
)

// edge is a call of one function by another, which hands a request on.
type edge struct{ from, to function }

// functionOf identifies a frame's function: a literal by the line on which it begins, as
// the linker has a name for each place where it was inlined. An execution trace lacks
// that line, so the linker's name of it stands for it.
func (o *Rules) functionOf(f Frame) function {
	if !symbol.IsClosure(f.Func) {
		return function{f.Func, f.File}
	}
	if linked := (function{f.Func, f.File}); f.Decl == 0 {
		if known, ok := o.literals[linked]; ok {
			return known
		}
		return linked
	}
	return function{FuncName(f) + strconv.Itoa(f.Decl), f.File}
}

// learnLiterals takes the linker's names of literals.
func (o *Rules) learnLiterals(stacks []Stack) {
	for s := range stacks {
		for _, f := range stacks[s].Frames {
			if symbol.IsClosure(f.Func) && f.Decl != 0 {
				o.literals[function{f.Func, f.File}] = o.functionOf(f)
			}
		}
	}
}

func (o *Rules) edgeAt(frames []Frame, i int) edge {
	return edge{o.functionOf(frames[i+1]), o.functionOf(frames[i])}
}

// linked reports whether frame i was seen to be the next of a chain.
func (o *Rules) linked(frames []Frame, i int) bool {
	return len(o.edges) > 0 && i+1 < len(frames) && o.edges[o.edgeAt(frames, i)]
}

// written reports whether a function may be a link of a chain that tare does not know:
// it is neither the standard library's nor a known framework's, nor a literal that a
// function on the stack made and handed to what calls it.
func written(frames []Frame, i int) bool {
	fn := frames[i].Func
	return frames[i].File != "" && !framework.Foreign(symbol.Package(fn)) && !framework.GeneratedRPC(fn) &&
		!slices.ContainsFunc(frames[i+1:], func(f Frame) bool { return symbol.Within(fn, f.Func) })
}

// learnFrameworks finds frameworks that tare does not know: handlers of a dependency that
// call the program's own functions. A dependency cannot import the program, so it was
// given those. One that mostly hands on to another http.Handler is a middleware instead.
func (o *Rules) learnFrameworks(stacks []Stack) {
	type begun struct {
		calls, passes float64
		edges         map[edge]bool
	}
	all := map[function]*begun{}
	for s := range stacks {
		frames, weight := stacks[s].Frames, max(stacks[s].Count, 1)
		var in *begun
		var by []string // packages of it that called a link
		for i := len(frames) - 1; i >= 0; i-- {
			if owner, ok := o.owned(frames, i, false); ok && owner.Kind == Handler {
				if in != nil && len(by) == 0 {
					in.passes += weight
				}
				in, by = nil, nil
				if symbol.Dependency(frames[i].File) && !framework.Foreign(symbol.Package(frames[i].Func)) && i+1 < len(frames) && frames[i+1].Standard() {
					f := o.functionOf(frames[i])
					if all[f] == nil {
						all[f] = &begun{edges: map[edge]bool{}}
					}
					in = all[f]
				}
				continue
			}
			// A literal of the framework's that a link calls is what it was given to call next.
			if in != nil && symbol.IsClosure(frames[i].Func) && slices.Contains(by, symbol.Package(frames[i].Func)) {
				in.edges[edge{from: o.functionOf(frames[i])}] = true
			}
			if in == nil || symbol.Dependency(frames[i].File) || !symbol.Dependency(frames[i+1].File) || !written(frames, i) {
				continue
			}
			pkg := symbol.Package(frames[i+1].Func)
			if len(by) == 0 {
				in.calls += weight
			} else if !slices.Contains(by, pkg) {
				continue
			}
			by = append(by, pkg)
			in.edges[o.edgeAt(frames, i)] = true
		}
	}
	for f, found := range all {
		if found.calls <= found.passes {
			continue
		}
		o.frameworks[f] = true
		for e := range found.edges {
			o.edges[e] = true
			o.hands[e.from] = true
		}
	}
}

// recursion is what the stacks of a profile show of a function that comes back to itself
// by way of others.
type recursion struct {
	weight float64
	again  bool                      // it was on one stack twice, and called two functions
	broken bool                      // no chain: the same function twice, or in another order
	lines  map[int]map[function]bool // by its line, what it called there
	known  map[function]bool         // of those, whose rows need no learning
	order  map[edge]bool             // of what it called on one stack, the outer first
}

// learnRecursion finds the function by which a home-made chain calls one link after the
// other: it is on most stacks of requests, comes back once for each link, and calls them
// from the same line. Each link is called once a request, always in the same order;
// that tells a chain from what walks a tree.
func (o *Rules) learnRecursion(stacks []Stack) {
	all := map[function]*recursion{}
	var requests float64
	for s := range stacks {
		frames, weight := stacks[s].Frames, max(stacks[s].Count, 1)
		begin := o.outermost(frames)
		if begin < 0 {
			continue
		}
		requests += weight
		called := map[function][]function{}
		for i := begin - 1; i >= 0; i-- {
			by, to := o.functionOf(frames[i+1]), o.functionOf(frames[i])
			if by == to || !written(frames, i) || framework.Foreign(symbol.Package(frames[i+1].Func)) {
				continue
			}
			r := all[by]
			if r == nil {
				r = &recursion{lines: map[int]map[function]bool{}, known: map[function]bool{}, order: map[edge]bool{}}
				all[by] = r
			}
			if len(called[by]) == 0 {
				r.weight += weight
			}
			r.takes(called[by], to, frames[i+1].Line)
			_, r.known[to] = o.owned(frames, i, true)
			called[by] = append(called[by], to)
		}
	}
	for by, r := range all {
		if !r.again || r.broken || r.weight < requests/2 {
			continue
		}
		for _, callees := range r.lines {
			for to := range callees {
				if len(callees) > 1 && !r.known[to] {
					o.edges[edge{by, to}] = true
				}
			}
		}
	}
}

// takes enters what the function called on one stack after others.
func (r *recursion) takes(others []function, to function, line int) {
	for _, other := range others {
		r.again = true
		r.order[edge{other, to}] = true
		r.broken = r.broken || other == to || r.order[edge{to, other}]
	}
	if r.lines[line] == nil {
		r.lines[line] = map[function]bool{}
	}
	r.lines[line][to] = true
}

// outermost returns where on a stack its outermost middleware or handler is; -1 if there
// is none.
func (o *Rules) outermost(frames []Frame) int {
	for i := len(frames) - 1; i >= 0; i-- {
		if owner, ok := o.owned(frames, i, false); ok && owner.Kind == Handler {
			return i
		}
	}
	return -1
}

// learnDirect finds chains whose links call the next as any function. Either each is a
// literal, which what calls it did not make; or they are methods of one name. One such
// call may be of what a middleware was configured with, two in a row are a chain. Behind
// a framework, a literal within a literal is enough.
func (o *Rules) learnDirect(stacks []Stack) {
	for s := range stacks {
		frames := stacks[s].Frames
		var run []edge
		entry := -1 // the owner in which the run began
		for i := len(frames) - 1; i >= 0; i-- {
			if owner, ok := o.owned(frames, i, false); ok && owner.Kind == Handler {
				entry, run = i, nil
				continue
			}
			if entry != i+1+len(run) || directChains(frames[i:]) || !written(frames, i) || !continues(frames, i, entry) {
				entry = -1
				continue
			}
			run = append(run, o.edgeAt(frames, i))
			if len(run) > 1 || symbol.Nested(frames[i].Func) && o.linked(frames, entry) && symbol.Dependency(frames[entry+1].File) {
				o.linkDirect(run)
			}
		}
	}
}

// linkDirect takes what calls what for a chain, each of which calls the next as any
// function.
func (o *Rules) linkDirect(run []edge) {
	for _, e := range run {
		o.edges[e] = true
		o.direct[e.from], o.direct[e.to] = true, true
	}
}

// continues reports whether frame i looks like the next of a chain that began in the
// owner at entry.
func continues(frames []Frame, i, entry int) bool {
	fn, caller := frames[i].Func, frames[i+1].Func
	if symbol.IsClosure(fn) {
		return true
	}
	if !symbol.IsMethod(fn) || framework.Writes(fn) || symbol.Method(fn) == "Read" {
		return false
	}
	if i+1 == entry {
		return strings.HasSuffix(caller, ".ServeHTTP")
	}
	return symbol.IsMethod(caller) && !symbol.IsClosure(caller) && symbol.Method(fn) == symbol.Method(caller)
}

// learnUnanswered takes, behind the innermost middleware of frameworks such as echo, the
// function that holds most of its time for the handler, where none was seen to answer. An
// answer that takes well below a microsecond is on no stack of a short profile.
func (o *Rules) learnUnanswered(stacks []Stack) {
	all := map[function]*innermost{}
	for s := range stacks {
		frames, weight := stacks[s].Frames, max(stacks[s].Count, 1)
		var last function // the innermost link so far
		at := -1
		for i := len(frames) - 1; i >= 0; i-- {
			owner, ok := o.owned(frames, i, true)
			if !ok || owner.Kind != Handler {
				continue
			}
			f := o.functionOf(frames[i])
			if at >= 0 && last != f {
				all[last].passes = true
			}
			at = -1
			if chain := chainOf(frames[i+1:]); chain == "" || strings.HasPrefix(chain, framework.Kratos) || !symbol.IsClosure(frames[i].Func) {
				continue
			}
			if all[f] == nil {
				all[f] = &innermost{owner: owner, calls: map[function]called{}}
			}
			last, at = f, i
		}
		if at >= 0 {
			all[last].add(frames[:at], weight, o)
		}
	}
	for _, l := range all {
		for f, c := range l.calls {
			if !l.passes && 2*c.weight > l.weight {
				o.answering[f] = true
				o.guessed = append(o.guessed, [2]string{c.name, l.owner.Name})
			}
		}
	}
}

// innermost is a middleware of a stack inside which no other owner begins.
type innermost struct {
	owner  Owner
	weight float64
	passes bool // another owner was seen inside it
	calls  map[function]called
}

// called is what a middleware calls.
type called struct {
	name   string
	weight float64
}

// add enters a stack, of which frames are inside the middleware.
func (l *innermost) add(frames []Frame, weight float64, o *Rules) {
	l.weight += weight
	if len(frames) == 0 {
		return
	}
	f := frames[len(frames)-1]
	if f.File == "" || framework.Foreign(symbol.Package(f.Func)) || symbol.Dependency(f.File) || symbol.IsClosure(f.Func) || framework.Writes(f.Func) {
		return
	}
	c := l.calls[o.functionOf(f)]
	l.calls[o.functionOf(f)] = called{f.Name(), c.weight + weight}
}
