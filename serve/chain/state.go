package chain

import (
	"context"
	"math/bits"
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
//
// The first values are appended without a lock and never changed; the newest of
// a key counts. So a layer that timed out may still set one while a layer
// outside looks. A mutex around a list that is searched first does the same, and
// makes a value cost 1.9 times as much (BenchmarkLayers, kind=value less
// kind=noop at depth=10).
type State struct {
	rec bare

	n     atomic.Uint32 // values begun, of which those past few are in more
	ready atomic.Uint32 // bit i: few[i] may be read
	odd   atomic.Uint32 // what is unusual about some value: aliased, boxed
	few   [inline]value

	mu   sync.Mutex // guards more
	more []value    // newer than few; one a key
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
	n := min(s.n.Load(), inline)
	if s.odd.Load()&boxed != 0 {
		empty(s.few[:n])
		empty(s.more)
	} else {
		clear(s.few[:n])
		clear(s.more)
	}
	s.more = s.more[:0]
	s.n.Store(0)
	s.ready.Store(0)
}

// begin returns the index in few of a place for one more value, or one past few.
func (s *State) begin() uint32 {
	if s.n.Load() >= inline {
		return inline
	}
	return min(s.n.Add(1)-1, inline)
}

// empty drops the values but keeps boxes, made zero.
func empty(vals []value) {
	for i := range vals {
		v := &vals[i]
		if v.key.odd&boxed == 0 {
			v.val = nil
		} else {
			v.key.wipe(v.val)
		}
		v.key = nil
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
		m := k.about()
		return s.open(func(o *meta) bool { return o == m })
	}
	if s.odd.Load()&aliased != 0 {
		return s.open(func(o *meta) bool { return o.alias != nil && o.alias == key })
	}
	return nil
}

// open returns the newest value of a key that is meant, nil if there is none.
func (s *State) open(meant func(*meta) bool) any {
	if s.n.Load() > inline {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range s.more {
			if v := &s.more[i]; meant(v.key) {
				return v.open()
			}
		}
	}
	ready := s.ready.Load()
	for i := inline - 1; i >= 0; i-- {
		if v := &s.few[i]; ready>>i&1 != 0 && meant(v.key) {
			return v.open()
		}
	}
	return nil
}

func (v *value) open() any {
	if v.key.odd&boxed != 0 {
		return v.key.open(v.val)
	}
	return v.val
}

// early returns where the key's newest value among the first is, nil if none is.
func (s *State) early(k *meta) *value {
	ready := s.ready.Load()
	n := bits.TrailingZeros32(^ready)
	if ready>>n != 0 {
		return s.ragged(k, ready)
	}
	few := s.few[:n]
	for i := len(few) - 1; i >= 0; i-- {
		if few[i].key == k {
			return &few[i]
		}
	}
	return nil
}

// ragged is early where a value that began before others is not ready.
func (s *State) ragged(k *meta, ready uint32) *value {
	for ready != 0 {
		i := bits.Len32(ready) - 1
		if v := &s.few[i]; v.key == k {
			return v
		}
		ready &^= 1 << i
	}
	return nil
}

// late returns where the key's value among the others is, nil if none is. s.mu
// is held.
func (s *State) late(k *meta) *value {
	for i := range s.more {
		if v := &s.more[i]; v.key == k {
			return v
		}
	}
	return nil
}

// another returns one more place past few. One past few means that more will
// follow, so the first growth is a large one. s.mu is held.
func (s *State) another() *value {
	if len(s.more) == cap(s.more) {
		grown := make([]value, len(s.more), max(4*inline, 2*len(s.more)))
		copy(grown, s.more)
		s.more = grown
	}
	s.more = s.more[:len(s.more)+1]
	return &s.more[len(s.more)-1]
}

// slotted is a context with a place for the state of a request's chain, or the
// writer of the answer to that request.
type slotted interface{ ChainSlot() *any }

// stateKey is what contexts answer with the nearest state.
type stateKey struct{}

// carrier is the context that carries the state where the engine has no place
// for it.
type carrier struct {
	context.Context
	slot  any // &state
	state State
}

func (c *carrier) ChainSlot() *any { return &c.slot }

func (c *carrier) Value(key any) any {
	if v := c.state.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// carry returns a copy of the request whose context carries a new state.
func carry(r *http.Request) (*State, *http.Request) {
	c := &carrier{Context: r.Context()}
	c.slot = &c.state
	return &c.state, r.WithContext(c)
}

// slotOf returns the place that ctx itself has for the state, nil if none. It is
// small enough to be inlined; calling it would make a value cost 1.2 times as much
// (BenchmarkLayers).
func slotOf(ctx context.Context) *any {
	if c, ok := ctx.(slotted); ok {
		return c.ChainSlot()
	}
	return nil
}

// slotIn returns the place that belongs to the answer which w writes, nil if
// there is none.
func slotIn(w http.ResponseWriter) *any {
	if c, ok := w.(slotted); ok {
		return c.ChainSlot()
	}
	c, ok := find[slotted](w)
	if !ok {
		return nil
	}
	return c.ChainSlot()
}

// held returns the state in the place, nil if there is neither.
func held(slot *any) *State {
	if slot == nil {
		return nil
	}
	s, _ := (*slot).(*State)
	return s
}

// nearest returns the state of ctx or of the nearest context that it derives
// from, nil if there is none.
func nearest(ctx context.Context) *State {
	if s := held(slotOf(ctx)); s != nil {
		return s
	}
	s, _ := ctx.Value(stateKey{}).(*State)
	return s
}

// shared returns the state of the chain around ctx. Nil: there is none, though an
// engine may have set a state aside.
func shared(ctx context.Context) *State {
	s := nearest(ctx)
	if s == nil || s.rec.w == nil {
		return nil
	}
	return s
}
