package main

import "net/http"

// size is that of the slice that a request works in.
const size = 8 << 10

// worker writes into a slice, and returns how much.
type worker interface{ work([]byte) int }

// filler is a worker.
type filler struct{ text string }

func (f filler) work(b []byte) int { return copy(b, f.text) }

// chosen returns a worker of which the compiler knows nothing.
//
//go:noinline
func chosen() worker { return filler{body} }

// escapes hands its slice to a worker behind an interface, which might keep it: so it
// is allocated, for each request.
func escapes(w http.ResponseWriter, _ *http.Request) {
	b := make([]byte, size) // leaks: escape
	n := chosen().work(b)
	reply(w, string(b[:n]))
}

// stays hands its slice to a worker whose type is known: it stays on the stack.
func stays(w http.ResponseWriter, _ *http.Request) {
	b := make([]byte, size)
	n := filler{body}.work(b)
	reply(w, string(b[:n]))
}
