package main

import (
	"context"
	"net/http"

	"github.com/tarehq/tare/arms/layers/plan"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/serve/chain"
)

// chained is the same by serve/chain: what layers keep, and what they see of
// the answer, they share.
type chained struct {
	users []*plan.User
	keys  []*chain.Key[*plan.User]
}

func newChained(users []*plan.User) layering {
	c := chained{users, keys[:len(users)]}
	return layering{c.wrap, c.noop, c.value, c.record, c.find}
}

// keys are made once in a program, as a service's are.
var keys = func() (all []*chain.Key[*plan.User]) {
	for _, name := range plan.Names(plan.Most) {
		all = append(all, chain.NewKey[*plan.User](name))
	}
	return all
}()

func (c chained) wrap(h http.Handler, layer func(i int) middleware) http.Handler {
	layers := new(chain.Chain)
	for i := range c.users {
		layers = layers.Use(layer(i))
	}
	return chain.Must(layers.Then(h))
}

func (c chained) noop(int) middleware {
	return func(next http.Handler) http.Handler { return &noop{next} }
}

func (c chained) value(i int) middleware {
	return func(next http.Handler) http.Handler { return &value{next, c.keys[i], c.users[i]} }
}

func (c chained) record(int) middleware {
	return func(next http.Handler) http.Handler { return &record{next} }
}

// find looks up the outermost's and the innermost's value.
func (c chained) find(r *http.Request) {
	if last := len(c.users) - 1; last >= 0 {
		u, _ := c.keys[0].Value(r)
		plan.Found(u, c.users[0])
		u, _ = c.keys[last].Value(r)
		plan.Found(u, c.users[last])
	}
}

type noop struct{ next http.Handler }

func (h *noop) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.next.ServeHTTP(w, r) }

type value struct {
	next http.Handler
	key  *chain.Key[*plan.User]
	user *plan.User
}

func (h *value) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.next.ServeHTTP(w, h.key.With(r, h.user))
}

type record struct{ next http.Handler }

func (h *record) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, rec := chain.Record(w)
	h.next.ServeHTTP(w, r)
	plan.Saw(rec.Status())
}

// loopContext returns how the in-process loop makes the context that the engine
// gives a request: nil where that has no place for a chain's state.
//
// serve.Server has one. With Reuse it resets the state for the next request, and
// so does the loop. Without, the state is a part of the memory that the engine
// allocates for a request anyhow, with more room once a request needed that; the
// loop allocates the memory of many requests at a time, so that its bytes and time
// count, but no allocation of their own.
func loopContext(e engines.Engine) func() (context.Context, func()) {
	switch e {
	case engines.Serve:
		return func() (context.Context, func()) {
			c := &slotted{Context: context.Background()}
			fresh, roomy := many[chain.State](), many[roomy]()
			last := new(chain.State)
			return c, func() {
				if !last.Crowded() {
					last = fresh()
				} else {
					x := roomy()
					x.Lend(&x.more)
					last = &x.State
				}
				c.slot = last
			}
		}
	case engines.ServeReuse:
		return func() (context.Context, func()) {
			s := new(chain.State)
			return &slotted{context.Background(), s}, s.Reset
		}
	}
	return nil
}

// roomy is a state with room for the values of many layers.
type roomy struct {
	chain.State
	more chain.Room
}

// many returns a source of new variables, allocated many at a time.
func many[T any]() func() *T {
	var fresh []T
	return func() *T {
		if len(fresh) == 0 {
			fresh = make([]T, 256)
		}
		v := &fresh[0]
		fresh = fresh[1:]
		return v
	}
}

// slotted is a context with a place for the state, as the engine's requests
// have.
type slotted struct {
	context.Context
	slot any
}

func (c *slotted) ChainSlot() *any { return &c.slot }

func (c *slotted) Value(key any) any {
	if s, ok := c.slot.(*chain.State); ok {
		if v := s.Value(key); v != nil {
			return v
		}
	}
	return c.Context.Value(key)
}
