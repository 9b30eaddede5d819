package chain

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"

	"github.com/tarehq/tare/serve/internal/sys"
)

// Key is what values of type T are kept under, one a request. Two keys never
// share a value, whatever their names. A Key is safe for concurrent use; make
// it once, in a package's variable.
//
// A value set by an inner layer can be seen by the layers outside of it, once
// the handler has returned to them: the access log can say who it was. Setting
// again replaces what was there.
//
// A pointer, map, channel or function is kept as it is, an interface too. For any
// other type the first value of a request takes one allocation, none if the
// engine reuses requests.
type Key[T any] struct{ meta }

// meta is what a key has whatever its type.
type meta struct {
	name   string
	number uint32              // of its cell
	odd    uint32              // 0: its values are in cells, others in the list
	alias  any                 // if aliased: the key of others that it stands for
	peek   func(*sys.Cell) any // if it has a cell: what is in that, nil if nothing
	open   func(any) any       // if boxed: the T in a *T
	wipe   func(any)           // if boxed: makes a *T zero
}

const (
	listed  = 1 << iota // the value is in the list
	aliased             // others look the value up by a key of their own
	boxed               // the value is a *T
)

// numbered is how many cells keys have asked for, in this program.
var numbered atomic.Uint32

// valued is whether this program has made a key. Without one no layer keeps values, and a
// chain makes no state for them.
var valued atomic.Bool

// keyed is any Key.
type keyed interface{ about() *meta }

func (m *meta) about() *meta { return m }

// String returns the key's name.
func (m *meta) String() string { return m.name }

// NewKey returns a key. The name is for people.
func NewKey[T any](name string) *Key[T] {
	valued.Store(true)
	k := &Key[T]{meta{name: name}}
	if isPointer[T]() {
		if k.number = numbered.Add(1) - 1; k.number < cells {
			k.peek = peek[T]
			return k
		}
	}
	return k.list()
}

// isPointer reports whether a T is a pointer to the runtime, as a cell holds it.
func isPointer[T any]() bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	}
	return false
}

// KeyOf returns a key for the values that handlers and middlewares which know
// nothing of chains look up in the context by key: they find what is set by the
// returned one, and it finds what they put into the context. It panics if key
// is nil or cannot be compared, as context.WithValue does.
func KeyOf[T any](key any) *Key[T] {
	if key == nil || !reflect.TypeOf(key).Comparable() {
		panic(fmt.Sprintf("chain: %T cannot be a context's key", key))
	}
	valued.Store(true)
	k := &Key[T]{meta{name: fmt.Sprintf("%T", key), alias: key, odd: aliased}}
	return k.list()
}

// list has the key's values kept in the list.
func (k *Key[T]) list() *Key[T] {
	k.number = cells
	k.odd |= listed
	if !isPointer[T]() && reflect.TypeFor[T]().Kind() != reflect.Interface {
		k.odd |= boxed
		k.open, k.wipe = unbox[T], wipe[T]
	}
	return k
}

func peek[T any](c *sys.Cell) any {
	if c == nil {
		return nil
	}
	if v, ok := sys.Get[T](c); ok {
		return v
	}
	return nil
}

func unbox[T any](box any) any { return *box.(*T) }

func wipe[T any](box any) {
	var zero T
	*box.(*T) = zero
}

// Set keeps v under the key for r and all who hold r or derive from it. It
// reports whether it could: not if no chain is around the caller, or if others put
// a value nearer to r; see With.
func (k *Key[T]) Set(r *http.Request, v T) bool {
	return shared(r.Context()) != nil && k.With(r, v) == r
}

// With keeps v under the key and returns the request to pass on: r itself in a
// chain, a copy of it whose context carries the value anywhere else, and where r's
// context may have another one that hides it, under the key of [KeyOf]. It is for
// middlewares that are used in chains and without.
func (k *Key[T]) With(r *http.Request, v T) *http.Request {
	s := shared(r.Context())
	if s == nil {
		return k.withContext(r, v)
	}
	if k.number >= near {
		return k.withSlowly(s, r, v)
	}
	sys.Put(&s.near[k.number], v)
	return r
}

// withSlowly is With for a value whose place is not near.
func (k *Key[T]) withSlowly(s *State, r *http.Request, v T) *http.Request {
	hidden := k.hidden(s, r.Context())
	k.putSlowly(s, v)
	if hidden && !k.shows(r.Context(), v) {
		return k.withContext(r, v)
	}
	return r
}

// hidden reports whether ctx may have a value by the key of others that is nearer
// than s.
func (k *Key[T]) hidden(s *State, ctx context.Context) bool {
	return k.odd&aliased != 0 && held(slotOf(ctx)) != s && ctx.Value(k.alias) != nil
}

// shows reports whether ctx has v by the key of others: what was there before may have been
// an earlier value in the state. Of values that cannot be compared this is not known.
func (k *Key[T]) shows(ctx context.Context, v T) bool {
	return reflect.ValueOf(v).Comparable() && ctx.Value(k.alias) == any(v)
}

// withContext returns a copy of the request whose context carries the value.
func (k *Key[T]) withContext(r *http.Request, v T) *http.Request {
	if k.odd&aliased != 0 {
		return r.WithContext(context.WithValue(r.Context(), k.alias, v))
	}
	return r.WithContext(&kept{r.Context(), k, v})
}

// kept is a context with a value that was there before the chain was entered. The
// place of the chain's state may be further out, and what is set there is newer.
type kept struct {
	context.Context
	key keyed
	val any
}

func (c *kept) Value(key any) any {
	if key != any(c.key) {
		return c.Context.Value(key)
	}
	if s, ok := c.Context.Value(stateKey{}).(*State); ok {
		if v := s.Value(key); v != nil {
			return v
		}
	}
	return c.val
}

// Value returns what is kept under the key for r, and whether anything is.
func (k *Key[T]) Value(r *http.Request) (T, bool) { return k.From(r.Context()) }

// From returns what is kept under the key for the request that ctx is of, or
// derives from, and whether anything is.
func (k *Key[T]) From(ctx context.Context) (T, bool) {
	if s := held(slotOf(ctx)); s != nil && k.number < near {
		if v, ok := sys.Get[T](&s.near[k.number]); ok {
			return v, true
		}
	}
	return k.search(ctx)
}

// search looks everywhere: in the state of ctx, and where contexts that layers
// derived look, nearest first.
func (k *Key[T]) search(ctx context.Context) (T, bool) {
	if s := held(slotOf(ctx)); s != nil {
		if v, ok := k.get(s); ok {
			return v, true
		}
	}
	if k.odd&aliased != 0 {
		v, ok := ctx.Value(k.alias).(T)
		return v, ok
	}
	if s, ok := ctx.Value(stateKey{}).(*State); ok {
		if v, ok := k.get(s); ok {
			return v, true
		}
	}
	v, ok := ctx.Value(k).(T)
	return v, ok
}

// putSlowly puts a value whose place is not near.
func (k *Key[T]) putSlowly(s *State, v T) {
	if k.odd == 0 {
		sys.Put(s.room(k.number), v)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	place := s.find(&k.meta)
	if place == nil {
		place = s.another()
	}
	k.fill(place, v)
	if s.odd.Load()&k.odd != k.odd { // as of a State that is new
		s.odd.Or(k.odd)
	}
}

// fill puts v into the place, in a box for which memory may still be there.
func (k *Key[T]) fill(place *value, v T) {
	place.key = &k.meta
	if k.odd&boxed == 0 {
		place.val = v
	} else if box, ok := place.val.(*T); ok {
		*box = v
	} else {
		box = new(T)
		*box = v
		place.val = box
	}
}

func (k *Key[T]) get(s *State) (v T, ok bool) {
	if k.odd == 0 {
		if c := s.cell(k.number); c != nil {
			return sys.Get[T](c)
		}
		return v, false
	}
	if s.odd.Load()&k.odd != k.odd {
		return v, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	place := s.find(&k.meta)
	switch {
	case place == nil:
		return v, false
	case place.key != &k.meta: // another for the same key of others
		v, ok = place.open().(T)
		return v, ok
	case k.odd&boxed != 0:
		return *place.val.(*T), true
	}
	v, _ = place.val.(T) // a nil interface is no T
	return v, true
}
