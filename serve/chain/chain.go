package chain

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// Chain is a list of middlewares, outermost first. The zero value is empty.
// Chains never change: methods return new ones, so that one can be the start of
// many, and use from many goroutines is safe.
type Chain struct {
	groups []group
	route  *pattern.Pattern // what all requests match; nil: not known
}

// group is layers under one condition.
type group struct {
	when   Condition // nil: none
	layers []Layer
}

// New returns a chain of the middlewares.
func New(mws ...func(http.Handler) http.Handler) *Chain { return new(Chain).Use(mws...) }

// Use returns the chain with the middlewares after its own.
func (c *Chain) Use(mws ...func(http.Handler) http.Handler) *Chain { return c.When(nil, mws...) }

// When returns the chain with the middlewares after its own, standing for those
// requests alone that the condition holds for. It is asked once for all of them.
func (c *Chain) When(cond Condition, mws ...func(http.Handler) http.Handler) *Chain {
	g := group{when: cond}
	for _, mw := range mws {
		g.layers = append(g.layers, Layer{Wrap: mw})
	}
	return c.with(g)
}

// With returns the chain with the layers after its own.
func (c *Chain) With(layers ...Layer) *Chain {
	groups := make([]group, len(layers))
	for i, l := range layers {
		groups[i] = group{l.When, []Layer{l}}
	}
	return c.with(groups...)
}

func (c *Chain) with(groups ...group) *Chain {
	return &Chain{slices.Concat(c.groups, groups), c.route}
}

// For returns the chain for requests that match a pattern of http.ServeMux or of package
// router, such as "GET /api/users/{id}". Conditions that hold for all of them, or for
// none, are then decided when the chain is built. It panics on an invalid pattern, as
// http.ServeMux does.
//
// The caller sees to it that no other requests reach the chain.
func (c *Chain) For(route string) *Chain {
	p, err := parse(route)
	if err != nil {
		panic(fmt.Sprintf("chain: for %q: %v", route, err))
	}
	return &Chain{c.groups, p}
}

// Handler is a chain around a handler. It is safe for concurrent use if those
// are that it is made of.
type Handler struct {
	next    http.Handler // the outermost layer
	layers  []placed     // outermost first
	final   http.Handler
	layered bool // a layer may stand
}

// placed is a layer in its place.
type placed struct {
	Layer
	nth     int // counted from 1
	decided truth
}

func (p *placed) String() string { return fmt.Sprintf("%s (layer %d)", p.Name, p.nth) }

// Then puts the chain around h. If h is a chain around a handler itself, the
// two become one. The error joins all that is wrong: broken rules, each an
// [OrderError], and middlewares that are nil or return nil.
func (c *Chain) Then(h http.Handler) (*Handler, error) {
	if none(h) {
		return nil, errors.New("building the chain: there is no handler")
	}
	b := builder{route: c.route, next: h, final: h}
	for _, g := range c.groups {
		b.nth += len(g.layers)
	}
	if inner, ok := h.(*Handler); ok {
		b.next, b.final, b.placed = inner.next, inner.final, slices.Clone(inner.layers)
		slices.Reverse(b.placed)
	}
	for _, g := range slices.Backward(c.groups) {
		b.add(g)
	}
	slices.Reverse(b.placed)
	for i := range b.placed {
		b.placed[i].nth = i + 1
	}
	standing := slices.DeleteFunc(slices.Clone(b.placed), func(p placed) bool { return p.decided == no })
	if err := errors.Join(append(b.errs, check(standing))...); err != nil {
		return nil, fmt.Errorf("building the chain: %w", err)
	}
	return &Handler{b.next, b.placed, b.final, len(standing) > 0}, nil
}

// none reports whether h is nil, be it as a function or as a chain that an error
// came with.
func none(h http.Handler) bool {
	switch h := h.(type) {
	case nil:
		return true
	case http.HandlerFunc:
		return h == nil
	case *Handler:
		return h == nil
	}
	return false
}

// Must returns h, or panics if there was an error: for chains that are written
// down in the program.
func Must(h *Handler, err error) *Handler {
	if err != nil {
		panic(err)
	}
	return h
}

// builder puts layers around a handler, from the innermost outwards.
type builder struct {
	route  *pattern.Pattern
	next   http.Handler
	final  http.Handler
	placed []placed // innermost first
	nth    int      // of the layer at hand
	errs   []error
}

func (b *builder) add(g group) {
	decided := yes
	if g.when != nil {
		decided = g.when.decide(b.route)
	}
	without := b.next
	for _, l := range slices.Backward(g.layers) {
		l.When = g.when
		if err := b.wrap(&l, decided); err != nil {
			b.errs = append(b.errs, err)
		}
		b.placed = append(b.placed, placed{Layer: l, decided: decided})
		b.nth--
	}
	if decided == unknown {
		b.next = &branch{g.when, b.next, without}
	}
}

// wrap puts the layer around what there is, unless it is left out.
func (b *builder) wrap(l *Layer, decided truth) error {
	if l.Wrap == nil {
		return fmt.Errorf("layer %d has no middleware", b.nth)
	}
	if decided == no {
		if l.Name == "" {
			l.Name = nameOfWrap(l.Wrap)
		}
		return nil
	}
	made := l.Wrap(b.next)
	if none(made) {
		return fmt.Errorf("%s (layer %d) returns no handler", nameOfWrap(l.Wrap), b.nth)
	}
	l.complete(made, b.next)
	b.next = made
	return nil
}

// branch asks a condition that could not be decided when the chain was built.
type branch struct {
	when          Condition
	with, without http.Handler
}

func (b *branch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.when.Match(r) {
		b.with.ServeHTTP(w, r)
		return
	}
	b.without.ServeHTTP(w, r)
}

// ServeHTTP has the layers and the handler answer, with a state that they share.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.layered {
		h.next.ServeHTTP(w, r)
		return
	}
	slot := slotOf(r.Context())
	s := held(slot)
	if s == nil || slotIn(w) != slot || s.rec.w != nil {
		h.serveSlowly(w, r)
		return
	}
	h.next.ServeHTTP(s.rec.attach(w), r)
}

// serveSlowly serves where the state has to be made, or is in use by a chain
// further out. What that chain records must reach it, and what is kept for a
// request is for its own answer: a writer that leads somewhere else is another
// answer, such as one of many in a batch or one with a time-out, and has a state
// of its own. Where nobody keeps values none is made: [Record] does without.
func (h *Handler) serveSlowly(w http.ResponseWriter, r *http.Request) {
	s, own := nearest(r.Context()), slotIn(w)
	switch {
	case s != nil && s == held(own) && s.rec.w == nil:
	case s != nil && recorderIn(w) == &s.rec.Recorder, !valued.Load():
		h.next.ServeHTTP(w, r)
		return
	case s != nil:
		s, r = carry(r)
	default:
		if s = place(r, own); s == nil {
			s, r = carry(r)
		}
	}
	h.next.ServeHTTP(s.rec.attach(w), r)
}

// place makes a state in the place that the engine has for it, which is that of
// the answer; nil: it has none.
func place(r *http.Request, own *Slot) *State {
	slot := slotOf(r.Context())
	if slot == nil || slot != own {
		return nil
	}
	s := new(State)
	slot.Store(s)
	return s
}
