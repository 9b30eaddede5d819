package main

import "net/http"

// scratch is what a request works in.
type scratch struct {
	n    int
	data [8 << 10]byte
}

// worker does something in a scratch.
type worker interface{ work(*scratch) }

// filler is a worker.
type filler struct{ text string }

func (f filler) work(s *scratch) { s.n = copy(s.data[:], f.text) }

// chosen returns a worker of which the compiler knows nothing.
//
//go:noinline
func chosen() worker { return filler{body} }

// escapes hands its scratch to a worker behind an interface, which might keep it:
// so it is allocated, for each request.
func escapes(w http.ResponseWriter, _ *http.Request) {
	s := new(scratch) // leaks: escape
	chosen().work(s)
	reply(w, string(s.data[:s.n]))
}

// stays hands its scratch to a worker whose type is known: it stays on the stack.
func stays(w http.ResponseWriter, _ *http.Request) {
	s := new(scratch)
	filler{body}.work(s)
	reply(w, string(s.data[:s.n]))
}
