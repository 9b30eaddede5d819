package chain

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/tarehq/tare/serve/internal/sys"
)

// A value that is a pointer lies in a cell of its key's own number: near for the
// first keys of a program, far for some more.
const (
	near  = 16
	far   = 48
	cells = near + far
)

// State is what the layers of a chain share of one request: the values set by
// typed keys and the [Recorder] of the answer. The zero value is ready to use.
// Its values are safe for concurrent use, its recorder is not. A State must not
// be copied.
//
// Only engines make one, to put it in what ChainSlot points to; layers use [Key]
// and [Record].
//
// What is a pointer is set and found without a lock, by one atomic store or load:
// a layer that timed out may still set one while a layer outside looks. All else
// is in a list under a mutex.
type State struct {
	rec bare

	near [near]sys.Cell
	far  atomic.Pointer[Room]

	odd  atomic.Uint32 // what is unusual about some value, not in a cell
	mu   sync.Mutex    // guards list
	list []value       // one a key
	few  [3]value      // where list begins
}

// Room is memory for more values than a State has itself; see [State.Lend].
type Room struct{ cells [far]sys.Cell }

// Lend gives s the room, which must be new, so that s need not allocate it. It is
// for engines whose requests are Crowded, before anybody uses s.
func (s *State) Lend(r *Room) { s.far.Store(r) }

// Crowded reports whether s has needed a [Room]: one allocation, unless it was lent.
func (s *State) Crowded() bool { return s.far.Load() != nil }

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
	clear(s.near[:min(numbered.Load(), near)])
	if f := s.far.Load(); f != nil {
		clear(f.cells[:])
	}
	if s.odd.Load()&boxed != 0 {
		empty(s.list)
	} else {
		clear(s.list)
	}
	s.list = s.list[:0]
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
		if m.odd == 0 {
			return m.peek(s.cell(m.number))
		}
		return s.open(listed, func(o *meta) bool { return o == m })
	}
	return s.open(aliased, func(o *meta) bool { return o.alias != nil && o.alias == key })
}

// open returns the listed value of a key that is meant, nil if there is none. Unless
// some value is as odd, there is none.
func (s *State) open(odd uint32, meant func(*meta) bool) any {
	if s.odd.Load()&odd == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if v := &s.list[i]; meant(v.key) {
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

// cell returns the cell of that number, nil if s has none yet.
func (s *State) cell(number uint32) *sys.Cell {
	if number < near {
		return &s.near[number]
	}
	if f := s.far.Load(); f != nil {
		return &f.cells[number-near]
	}
	return nil
}

// room returns the cell of that number, for which it may have to make room.
func (s *State) room(number uint32) *sys.Cell {
	if c := s.cell(number); c != nil {
		return c
	}
	s.far.CompareAndSwap(nil, new(Room))
	return s.cell(number)
}

// find returns where the key's value is in the list, or that of another by which the
// same key of others looks; nil if there is none. s.mu is held.
func (s *State) find(k *meta) *value {
	for i := range s.list {
		if v := &s.list[i]; v.key == k || k.alias != nil && v.key.alias == k.alias {
			return v
		}
	}
	return nil
}

// another returns one more place in the list. s.mu is held.
func (s *State) another() *value {
	switch {
	case s.list == nil:
		s.list = s.few[:0]
	case len(s.list) == cap(s.list):
		more := append(make([]value, 0, 4*len(s.list)), s.list...)
		clear(s.list) // few stays, and would keep them alive
		s.list = more
	}
	s.list = s.list[:len(s.list)+1]
	return &s.list[len(s.list)-1]
}

// Slot is the place of an engine for the state of a request's chain; nil: empty. It is
// atomic since a chain may fill it while a layer outside looks.
type Slot = atomic.Pointer[State]

// slotted is a context with such a place, or the writer of the answer to its request.
type slotted interface{ ChainSlot() *Slot }

// stateKey is what contexts answer with the nearest state.
type stateKey struct{}

// carrier is the context that carries the state where the engine has no place
// for it, with the request that has this context: one allocation for both.
type carrier struct {
	context.Context
	slot    Slot // of state
	state   State
	request http.Request
}

func (c *carrier) ChainSlot() *Slot { return &c.slot }

func (c *carrier) Value(key any) any {
	if v := c.state.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// carry returns a copy of the request whose context carries a new state.
func carry(r *http.Request) (*State, *http.Request) {
	c := &carrier{Context: r.Context()}
	c.slot.Store(&c.state)
	c.request = *r.WithContext(c) // inlined, the copy in between stays on the stack
	return &c.state, &c.request
}

// slotOf returns the place that ctx itself has, nil if none. It is small enough to be
// inlined; calling it would make a value cost 1.2 times as much (BenchmarkLayers).
func slotOf(ctx context.Context) *Slot {
	if c, ok := ctx.(slotted); ok {
		return c.ChainSlot()
	}
	return nil
}

// slotIn returns the place that belongs to the answer which w writes, nil if
// there is none.
func slotIn(w http.ResponseWriter) *Slot {
	if c, ok := w.(slotted); ok {
		return c.ChainSlot()
	}
	if c, ok := find[slotted](w); ok {
		return c.ChainSlot()
	}
	return nil
}

// held returns the state in the place, nil if there is neither.
func held(slot *Slot) *State {
	if slot == nil {
		return nil
	}
	return slot.Load()
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
