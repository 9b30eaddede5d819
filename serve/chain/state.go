package chain

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
)

// inline is how many values a State holds without allocating.
const inline = 12

// State is what the layers of a chain share of one request: the values set by
// typed keys and the [Recorder] of the answer. The zero value is ready to use.
// Its values are safe for concurrent use, its recorder is not. A State must not
// be copied.
//
// Only engines make one, to put it in what ChainSlot points to; layers use [Key]
// and [Record].
type State struct {
	rec bare

	mu      sync.Mutex // a layer that timed out may still set while one outside looks
	n       int        // values in few
	few     [inline]value
	more    []value     // those past few
	aliased atomic.Bool // some key of KeyOf is among them
}

// value is what is kept under a key: the value itself or, where it would be
// moved to the heap each time, a pointer to it, which outlives Reset.
type value struct {
	key *meta
	val any
}

// Reset makes s as good as new for another request, but keeps its memory. It is
// for engines that reuse requests, once nobody uses the last one any more.
func (s *State) Reset() {
	s.rec = bare{}
	forget(s.few[:s.n])
	forget(s.more)
	s.n, s.more = 0, s.more[:0]
	s.aliased.Store(false)
}

// forget drops the values, keeping the memory of those that have some.
func forget(vals []value) {
	for i := range vals {
		v := &vals[i]
		if v.key.boxed {
			v.key.wipe(v.val)
			continue
		}
		*v = value{}
	}
}

// Value returns what is kept under key, as context.Context's Value does: under
// a *[Key], or under the key of others that one of [KeyOf] stands for. Nil if
// nothing is.
func (s *State) Value(key any) any {
	switch k := key.(type) {
	case stateKey:
		return s
	case keyed:
		s.mu.Lock()
		defer s.mu.Unlock()
		if v := s.find(k.about()); v != nil {
			return v.open()
		}
		return nil
	}
	if s.aliased.Load() {
		return s.foreign(key)
	}
	return nil
}

// foreign returns what is kept for those who look it up by a key of their own.
func (s *State) foreign(key any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, vals := range [...][]value{s.few[:s.n], s.more} {
		for i := range vals {
			if alias := vals[i].key.alias; alias != nil && alias == key {
				return vals[i].open()
			}
		}
	}
	return nil
}

func (v *value) open() any {
	if v.key.boxed {
		return v.key.open(v.val)
	}
	return v.val
}

// find returns where the key's value is, nil if it has none. s.mu is held.
func (s *State) find(k *meta) *value {
	for i := range s.few[:s.n] {
		if s.few[i].key == k {
			return &s.few[i]
		}
	}
	for i := range s.more {
		if s.more[i].key == k {
			return &s.more[i]
		}
	}
	return nil
}

// cell returns the place for the key's value: where it is, or a new one, which
// may still have the memory that the same key used there before. s.mu is held.
func (s *State) cell(k *meta) *value {
	v := s.find(k)
	if v != nil {
		return v
	}
	switch {
	case s.n < len(s.few):
		v = &s.few[s.n]
		s.n++
	case len(s.more) < cap(s.more):
		s.more = s.more[:len(s.more)+1]
		v = &s.more[len(s.more)-1]
	default:
		s.more = append(s.more, value{})
		v = &s.more[len(s.more)-1]
	}
	if v.key != k {
		*v = value{key: k}
	}
	if k.alias != nil {
		s.aliased.Store(true)
	}
	return v
}

// slotted is a context with a place for the state of a request's chain.
type slotted interface{ ChainSlot() *any }

// stateKey is what contexts answer with the nearest state.
type stateKey struct{}

// carrier is the context that carries the state where the engine has no place
// for it.
type carrier struct {
	context.Context
	state State
}

func (c *carrier) Value(key any) any {
	if v := c.state.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// carry returns a copy of the request whose context carries a new state.
func carry(r *http.Request) (*State, *http.Request) {
	c := &carrier{Context: r.Context()}
	return &c.state, r.WithContext(c)
}

// direct returns the state that ctx itself holds, nil if it holds none.
func direct(ctx context.Context) *State {
	switch c := ctx.(type) {
	case *carrier:
		return &c.state
	case slotted:
		if slot := c.ChainSlot(); slot != nil {
			s, _ := (*slot).(*State)
			return s
		}
	}
	return nil
}

// nearest returns the state of ctx or of the nearest context that it derives
// from, nil if there is none.
func nearest(ctx context.Context) *State {
	if s := direct(ctx); s != nil {
		return s
	}
	s, _ := ctx.Value(stateKey{}).(*State)
	return s
}
