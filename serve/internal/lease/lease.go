// Package lease keeps an http.ResponseWriter from being used once its handler has returned.
package lease

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ErrOver is what a method returns once the handler has returned.
var ErrOver = errors.New("http: response written after its handler returned")

// Writer is the ResponseWriter To until End is called. Any goroutine may call it at any time,
// one after the other. Afterwards methods do nothing and return ErrOver, and Header returns the
// same map as before.
//
// Note: the standard library's writer for HTTP/2 panics when it is used afterwards, which ends
// the process where another goroutine does so. What such a goroutine writes at the moment of the
// handler's return may go into another answer, since buffers are used again.
type Writer struct {
	To http.ResponseWriter

	gate   sync.Mutex  // held by each call but those about deadlines
	fields http.Header // what Header returned

	// deadlines is held while one is set. It is not gate: a deadline must reach a call that waits.
	deadlines sync.Mutex
	over      atomic.Bool // set under both
}

// End waits for a call that writes, and has later ones fail.
func (w *Writer) End() {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.deadlines.Lock()
	defer w.deadlines.Unlock()
	w.over.Store(true)
}

// Abort is End for a handler that panics: it has a call that waits for the client fail.
func (w *Writer) Abort() {
	if w.gate.TryLock() {
		w.gate.Unlock()
	} else {
		w.SetWriteDeadline(time.Unix(1, 0))
	}
	w.End()
}

// Over reports whether End was called.
func (w *Writer) Over() bool { return w.over.Load() }

// enter begins a call. Unless it returns an error, the caller unlocks the gate.
func (w *Writer) enter() error {
	w.gate.Lock()
	if !w.over.Load() {
		return nil
	}
	w.gate.Unlock()
	return ErrOver
}

// Header returns the fields of the answer.
func (w *Writer) Header() http.Header {
	w.gate.Lock()
	defer w.gate.Unlock()
	switch {
	case w.fields != nil:
	case w.over.Load():
		w.fields = http.Header{}
	default:
		w.fields = w.To.Header()
	}
	return w.fields
}

// WriteHeader decides the status.
func (w *Writer) WriteHeader(status int) {
	if w.enter() == nil {
		defer w.gate.Unlock()
		w.To.WriteHeader(status)
	}
}

// Write adds to the body.
func (w *Writer) Write(p []byte) (int, error) {
	if err := w.enter(); err != nil {
		return 0, err
	}
	defer w.gate.Unlock()
	return w.To.Write(p)
}

// FlushError sends what is buffered.
func (w *Writer) FlushError() error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.gate.Unlock()
	return http.NewResponseController(w.To).Flush()
}

// Push implements http.Pusher.
func (w *Writer) Push(target string, opts *http.PushOptions) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.gate.Unlock()
	if p, ok := w.To.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// CloseNotify returns a channel that tells when the client goes (http.CloseNotifier).
func (w *Writer) CloseNotify() <-chan bool {
	if w.enter() == nil {
		defer w.gate.Unlock()
		if n, ok := w.To.(interface{ CloseNotify() <-chan bool }); ok {
			return n.CloseNotify()
		}
	}
	return make(chan bool)
}

// EnableFullDuplex lets the handler read the body after it began to answer
// (http.ResponseController).
func (w *Writer) EnableFullDuplex() error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.gate.Unlock()
	return http.NewResponseController(w.To).EnableFullDuplex()
}

// SetReadDeadline sets until when the request's body may be read.
func (w *Writer) SetReadDeadline(t time.Time) error {
	return w.setDeadline((*http.ResponseController).SetReadDeadline, t)
}

// SetWriteDeadline sets until when the answer may be written.
func (w *Writer) SetWriteDeadline(t time.Time) error {
	return w.setDeadline((*http.ResponseController).SetWriteDeadline, t)
}

func (w *Writer) setDeadline(set func(*http.ResponseController, time.Time) error, t time.Time) error {
	w.deadlines.Lock()
	defer w.deadlines.Unlock()
	if w.over.Load() {
		return ErrOver
	}
	return set(http.NewResponseController(w.To), t)
}
