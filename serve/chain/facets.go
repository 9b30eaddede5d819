package chain

import (
	"bufio"
	"net"
	"net/http"
)

// A writer must claim no interface that the one below lacks: a handler that
// finds an http.Flusher streams, one that does not finds another way. So there
// is a type for each set of interfaces that servers' writers have. They are
// views of the same memory, which conversions of the pointer choose between;
// none is allocated. Of a set that is not here the writer shows the largest part
// that is, and the rest through Unwrap.
type (
	bare struct{ Recorder }

	flusher               bare // most middlewares, httptest
	hijacker              bare
	pusher                bare // http.TimeoutHandler on HTTP/2
	flushHijacker         bare // HTTP/1
	flushPusher           bare // HTTP/2
	flushNotifier         bare
	flushHijackerNotifier bare // HTTP/1 in net/http
	flushPusherNotifier   bare // HTTP/2 in net/http
)

// facets is a set of optional interfaces.
type facets uint8

const (
	flushes facets = 1 << iota
	hijacks
	pushes
	notifies // only ever beside flushes
)

// closeNotifier is http.CloseNotifier, which is deprecated and still asked for.
type closeNotifier interface{ CloseNotify() <-chan bool }

// attach makes b record what is written to w and returns the writer for it.
//
// Note: remembering what the last type of writer could do saves a fifth of an
// empty chain (BenchmarkLayers, depth=0), 6 ns of what an engine takes 1000 times
// as long for, and costs an allocation whenever types alternate, as HTTP/1 and
// 2 do.
func (b *bare) attach(w http.ResponseWriter) http.ResponseWriter {
	b.w = w
	f := facetsOf(w)
	switch {
	case f&(flushes|hijacks|notifies) == flushes|hijacks|notifies:
		return (*flushHijackerNotifier)(b)
	case f&(flushes|hijacks) == flushes|hijacks:
		return (*flushHijacker)(b)
	case f&(flushes|pushes|notifies) == flushes|pushes|notifies:
		return (*flushPusherNotifier)(b)
	case f&(flushes|pushes) == flushes|pushes:
		return (*flushPusher)(b)
	case f&(flushes|notifies) == flushes|notifies:
		return (*flushNotifier)(b)
	case f&flushes != 0:
		return (*flusher)(b)
	case f&hijacks != 0:
		return (*hijacker)(b)
	case f&pushes != 0:
		return (*pusher)(b)
	}
	return b
}

// facetsOf returns what w, and what it unwraps to, can do.
func facetsOf(w http.ResponseWriter) facets {
	var f facets
	for {
		if canFlush(w) {
			f |= flushes
		}
		if _, ok := w.(http.Hijacker); ok {
			f |= hijacks
		}
		if _, ok := w.(http.Pusher); ok {
			f |= pushes
		}
		if _, ok := w.(closeNotifier); ok {
			f |= notifies
		}
		u, ok := w.(unwrapper)
		if !ok {
			return f
		}
		w = u.Unwrap()
	}
}

func canFlush(w http.ResponseWriter) bool {
	if _, ok := w.(http.Flusher); ok {
		return true
	}
	_, ok := w.(interface{ FlushError() error })
	return ok
}

func (w *flusher) Flush()            { _ = w.flush() } // FlushError tells
func (w *flusher) FlushError() error { return w.flush() }

func (w *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

func (w *pusher) Push(target string, o *http.PushOptions) error { return w.push(target, o) }

func (w *flushHijacker) Flush()                                       { _ = w.flush() }
func (w *flushHijacker) FlushError() error                            { return w.flush() }
func (w *flushHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

func (w *flushPusher) Flush()                                        { _ = w.flush() }
func (w *flushPusher) FlushError() error                             { return w.flush() }
func (w *flushPusher) Push(target string, o *http.PushOptions) error { return w.push(target, o) }

func (w *flushNotifier) Flush()                   { _ = w.flush() }
func (w *flushNotifier) FlushError() error        { return w.flush() }
func (w *flushNotifier) CloseNotify() <-chan bool { return w.gone() }

func (w *flushHijackerNotifier) Flush()                                       { _ = w.flush() }
func (w *flushHijackerNotifier) FlushError() error                            { return w.flush() }
func (w *flushHijackerNotifier) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }
func (w *flushHijackerNotifier) CloseNotify() <-chan bool                     { return w.gone() }

func (w *flushPusherNotifier) Flush()            { _ = w.flush() }
func (w *flushPusherNotifier) FlushError() error { return w.flush() }
func (w *flushPusherNotifier) Push(target string, o *http.PushOptions) error {
	return w.push(target, o)
}
func (w *flushPusherNotifier) CloseNotify() <-chan bool { return w.gone() }
