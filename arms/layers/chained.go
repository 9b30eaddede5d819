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
	c := chained{users: users}
	for _, name := range plan.Names(plan.Depth(len(users))) {
		c.keys = append(c.keys, chain.NewKey[*plan.User](name))
	}
	return layering{c.wrap, c.noop, c.value, c.record, c.find}
}

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
// allocates for a request anyhow; the loop allocates many states at a time, so
// that their bytes and time count, but no allocation of their own.
func loopContext(e engines.Engine) func() (context.Context, func()) {
	switch e {
	case engines.Serve:
		return func() (context.Context, func()) {
			c := &slotted{Context: context.Background()}
			var fresh []chain.State
			return c, func() {
				if len(fresh) == 0 {
					fresh = make([]chain.State, 256)
				}
				c.slot, fresh = &fresh[0], fresh[1:]
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
