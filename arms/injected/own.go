package main

import (
	"net/http"

	"github.com/tarehq/tare/arms/injected/layers"
	"github.com/tarehq/tare/arms/injected/work"
)

// context is a request in a home-made chain: a list of functions of a form that no
// framework has, each of which calls the next.
type context struct {
	w     http.ResponseWriter
	r     *http.Request
	chain []func(*context)
}

func (c *context) next() {
	h := c.chain[0]
	c.chain = c.chain[1:]
	h(c)
}

// app serves one route.
type app []func(*context)

func (a app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(&context{w, r, a}).next()
}

// newApp returns the layers of what there is to do, and the handler, in that form.
func newApp(s *work.Set) app {
	return append(work.Present(s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log)), hello)
}

func hello(c *context) { layers.Hello(c.w, c.r) }

func spin(s *work.Spin) func(*context) {
	return func(c *context) {
		s.Do()
		c.next()
	}
}

func alloc(a *work.Alloc) func(*context) {
	return func(c *context) {
		a.Do()
		c.next()
	}
}

func block(b *work.Block) func(*context) {
	return func(c *context) {
		b.Do()
		c.next()
	}
}

func lock(l *work.Lock) func(*context) {
	return func(c *context) {
		l.Do()
		c.next()
	}
}

func log(l *work.Log) func(*context) {
	return func(c *context) {
		c.next()
		l.Do(c.r.Method, c.r.URL.Path)
	}
}
