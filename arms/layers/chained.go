package main

import (
	"net/http"

	"github.com/tarehq/tare/arms/layers/plan"
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
