package chain

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
)

// Key is what values of type T are kept under, one a request. Two keys never
// share a value, whatever their names. A Key is safe for concurrent use; make
// it once, in a package's variable.
//
// A value set by an inner layer can be seen by the layers outside of it, once
// the handler has returned to them: the access log can say who it was. Setting
// again replaces what was there.
//
// A pointer, map, channel, function or interface is kept as it is. For any
// other type the first value of a request takes one allocation, none if the
// engine reuses requests.
type Key[T any] struct{ meta }

// meta is what a key has whatever its type.
type meta struct {
	name  string
	odd   uint32        // aliased, boxed
	alias any           // if aliased: the key of others that it stands for
	open  func(any) any // if boxed: the T in a *T
	wipe  func(any)     // if boxed: makes a *T zero
}

const (
	aliased = 1 << iota // others look the value up by a key of their own
	boxed               // the value is a *T
)

// keyed is any Key.
type keyed interface{ about() *meta }

func (m *meta) about() *meta { return m }

// String returns the key's name.
func (m *meta) String() string { return m.name }

// NewKey returns a key. The name is for people.
func NewKey[T any](name string) *Key[T] {
	k := &Key[T]{meta{name: name}}
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Interface:
	default:
		k.odd, k.open, k.wipe = boxed, unbox[T], wipe[T]
	}
	return k
}

// KeyOf returns a key for the values that handlers and middlewares which know
// nothing of chains look up in the context by key: they find what is set by the
// returned one, and it finds what they put into the context. It panics if key
// is nil or cannot be compared, as context.WithValue does.
func KeyOf[T any](key any) *Key[T] {
	if key == nil || !reflect.TypeOf(key).Comparable() {
		panic(fmt.Sprintf("chain: %T cannot be a context's key", key))
	}
	k := NewKey[T](fmt.Sprintf("%T", key))
	k.alias, k.odd = key, k.odd|aliased
	return k
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
	i := uint32(inline)
	if k.odd == 0 {
		i = s.begin()
	}
	if i == inline {
		return k.withSlowly(s, r, v)
	}
	s.few[i] = value{&k.meta, v}
	s.ready.Or(1 << i)
	return r
}

// withSlowly is With for a value that is unusual or comes when few is full.
func (k *Key[T]) withSlowly(s *State, r *http.Request, v T) *http.Request {
	hidden := k.hidden(s, r.Context())
	k.putSlowly(s, v)
	if hidden {
		return k.withContext(r, v)
	}
	return r
}

// hidden reports whether ctx may have a value by the key of others that is nearer
// than s.
func (k *Key[T]) hidden(s *State, ctx context.Context) bool {
	return k.odd&aliased != 0 && held(slotOf(ctx)) != s && ctx.Value(k.alias) != nil
}

// withContext returns a copy of the request whose context carries the value.
func (k *Key[T]) withContext(r *http.Request, v T) *http.Request {
	var key any = k
	if k.odd&aliased != 0 {
		key = k.alias
	}
	return r.WithContext(context.WithValue(r.Context(), key, v))
}

// Value returns what is kept under the key for r, and whether anything is.
func (k *Key[T]) Value(r *http.Request) (T, bool) { return k.From(r.Context()) }

// From returns what is kept under the key for the request that ctx is of, or
// derives from, and whether anything is.
func (k *Key[T]) From(ctx context.Context) (T, bool) {
	if s := held(slotOf(ctx)); s != nil && s.n.Load() <= inline {
		if v := s.early(&k.meta); v != nil {
			return k.in(v)
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

// putSlowly puts a value that is unusual or comes when few is full.
func (k *Key[T]) putSlowly(s *State, v T) {
	s.odd.Or(k.odd)
	if i := s.begin(); i < inline {
		k.fill(&s.few[i], v)
		s.ready.Or(1 << i)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n.Load() == inline {
		s.n.Add(1) // there are values past few
	}
	cell := s.late(&k.meta)
	if cell == nil {
		cell = s.another()
	}
	k.fill(cell, v)
}

// fill puts v into the cell, in a box for which memory may still be there.
func (k *Key[T]) fill(cell *value, v T) {
	cell.key = &k.meta
	if k.odd&boxed == 0 {
		cell.val = v
	} else if box, ok := cell.val.(*T); ok {
		*box = v
	} else {
		box = new(T)
		*box = v
		cell.val = box
	}
}

// in returns what the cell, or none, holds.
func (k *Key[T]) in(cell *value) (v T, ok bool) {
	switch {
	case cell == nil:
		return v, false
	case k.odd&boxed != 0:
		return *cell.val.(*T), true
	}
	v, _ = cell.val.(T) // a nil interface is no T
	return v, true
}

func (k *Key[T]) get(s *State) (T, bool) {
	if s.n.Load() > inline {
		if v, ok := k.getLate(s); ok {
			return v, true
		}
	}
	return k.in(s.early(&k.meta))
}

func (k *Key[T]) getLate(s *State) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.in(s.late(&k.meta))
}
