package exectrace

import (
	"cmp"
	"hash/maphash"
	"strings"

	"golang.org/x/exp/trace"

	"github.com/tarehq/tare/cost"
)

// site is a place in the code where goroutines were seen: a stack, told from the
// trace's own stacks by what is on it, since those are numbered anew every second.
type site struct {
	frames []cost.Frame // its own, then those of whoever started the goroutine
	label  *label       // who is charged
	inner  cost.Owner   // the innermost middleware or handler; zero if there is none
	depth  int          // how many middlewares and handlers there are
	phase  phase
	server bool // the goroutine is a connection's
	probed bool // serves a profile or a trace, as whoever looks on asks for
}

// label is what a site goes by: who is charged, and the innermost function worth
// naming. Sites that go by the same have the same.
type label struct {
	owner cost.Owner
	at    string
}

// maxSites bounds the places distinguished. A service has some thousands; only a
// recursion without end, or a forged trace, has more.
const maxSites = 1 << 16

// sites keeps one site for each place.
type sites struct {
	seed  maphash.Seed
	known map[uint64]*site
	// fresh finds the sites of the stacks of one generation of the trace: stacks
	// hold on to their generation, which must not outlive it.
	fresh   map[origin]*site
	labels  map[label]*label
	around  map[cost.Owner]bool // middlewares: something was seen inside them
	rules   *cost.Rules
	learned bool // the rules know chains, else packages alone
	rest    *site
	others  map[string]bool // engines seen whose requests are not found
}

// origin is a stack and the site at which its goroutine was started, nil where
// that plays no part.
type origin struct {
	stack trace.Stack
	born  *site
}

func newSites(rules *cost.Rules) *sites {
	return &sites{
		seed: maphash.MakeSeed(), known: map[uint64]*site{}, fresh: map[origin]*site{},
		rules: cmp.Or(rules, cost.Learn()), learned: rules != nil, labels: map[label]*label{}, around: map[cost.Owner]bool{}, others: map[string]bool{},
		rest: &site{label: &label{owner: cost.Owner{Kind: cost.Other, Name: "too many places to distinguish"}}},
	}
}

// generation forgets the stacks of the last generation.
func (s *sites) generation() { clear(s.fresh) }

// of returns the site of a stack, nil of none.
func (s *sites) of(stack trace.Stack, born *site) *site {
	if stack == trace.NoStack {
		return nil
	}
	key := origin{stack, born}
	if at, ok := s.fresh[key]; ok {
		return at
	}
	s.fresh[key] = s.find(stack, born)
	return s.fresh[key]
}

func (s *sites) find(stack trace.Stack, born *site) *site {
	var frames []cost.Frame
	var h maphash.Hash
	h.SetSeed(s.seed)
	for f := range stack.Frames() {
		frames = append(frames, cost.Frame{Func: f.Func, File: f.File, Line: int(f.Line)})
		maphash.WriteComparable(&h, f.PC)
		h.WriteString(f.Func)
	}
	if len(frames) == 0 {
		return nil
	}
	maphash.WriteComparable(&h, born)
	id := h.Sum64()
	if at, ok := s.known[id]; ok {
		return at
	}
	if len(s.known) >= maxSites {
		return s.rest
	}
	s.known[id] = s.make(frames, born)
	return s.known[id]
}

func (s *sites) make(frames []cost.Frame, born *site) *site {
	s.rules.LearnPackages(frames)
	at, fn := &site{}, naming(frames)
	at.phase, at.server = phaseOf(frames)
	at.probed = findOutermost(frames, profiling) >= 0
	if born != nil {
		frames = append(frames, born.frames...)
	}
	at.frames = frames
	for _, e := range otherEngines {
		if findOutermost(frames, e.prefix) >= 0 {
			s.others[e.name] = true
		}
	}
	rules := s.rules
	if !s.learned { // what the stack itself shows
		rules = cost.Learn([]cost.Stack{{Frames: frames}})
	}
	owners := rules.Around(frames)
	for i, o := range owners {
		enclosed := o.Kind == cost.Middleware
		if enclosed {
			o.Kind = cost.Handler
			owners[i], s.around[o] = o, true
		}
		if o.Kind != cost.Handler {
			continue
		}
		if at.depth > 0 && !enclosed {
			s.around[at.inner] = true
		}
		at.inner = o
		at.depth++
	}
	at.label = s.labelled(label{owners[len(owners)-1], fn})
	return at
}

// labelled returns the one label like l.
func (s *sites) labelled(l label) *label {
	if s.labels[l] == nil {
		s.labels[l] = &l
	}
	return s.labels[l]
}

// role tells middlewares from handlers, which single stacks do not.
func (s *sites) role(o cost.Owner) cost.Owner {
	if o.Kind == cost.Handler && s.around[o] {
		o.Kind = cost.Middleware
	}
	return o
}

// naming picks the function by which a place is best known: the innermost that
// is not of the runtime or of what stands between it and everything else.
func naming(frames []cost.Frame) string {
	for _, f := range frames {
		if !plumbing(f.Func) {
			return f.Func
		}
	}
	return frames[0].Func
}

func plumbing(fn string) bool {
	for _, p := range [...]string{"runtime.", "internal/", "sync.", "syscall.", "net.(*netFD)", "net.(*conn)", "bufio.", "io.", "os.(*File)", "time.Sleep"} {
		if strings.HasPrefix(fn, p) {
			return true
		}
	}
	return false
}
