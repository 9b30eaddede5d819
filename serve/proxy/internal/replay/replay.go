// Package replay has several attempts to send a request read its body.
package replay

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Body is a request's body. One attempt after the other reads it: each begins with what was
// kept of what those before it have read.
type Body struct {
	mu     sync.Mutex
	client io.Reader
	most   int64  // bytes that are kept
	read   int64  // bytes that the client has sent
	kept   []byte // all of them, unless gone
	gone   bool   // there were more than are kept
	err    error  // of the client: io.EOF at the body's end
}

// New returns the body that a client sends, of which at most so many bytes are kept.
func New(client io.Reader, most int64) *Body { return &Body{client: client, most: most} }

var errGone = errors.New("what was read of the request's body cannot be sent again")

// Repeatable reports whether another attempt can send the body. It does not wait for an
// attempt that still reads.
func (b *Body) Repeatable() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return !b.gone && (b.err == nil || b.err == io.EOF)
}

// Broken reports whether the client has broken the body off.
func (b *Body) Broken() bool {
	if !b.mu.TryLock() {
		return false // it goes on
	}
	defer b.mu.Unlock()
	return b.err != nil && b.err != io.EOF
}

// Status is what a client is answered that has broken the body off: 413 if it is longer than a
// middleware lets it be.
func (b *Body) Status() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, long := errors.AsType[*http.MaxBytesError](b.err); long {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// Ended reports whether the client has sent all of it, and it was read. It does not wait for an
// attempt that still reads.
func (b *Body) Ended() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return b.err == io.EOF
}

// Attempt returns the body for a next attempt.
func (b *Body) Attempt() *Attempt { return &Attempt{b: b} }

// Attempt is the body as one attempt reads it.
type Attempt struct {
	b    *Body
	at   int64 // bytes that it has read
	over atomic.Bool
}

// Read implements io.Reader.
func (a *Attempt) Read(p []byte) (int, error) {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.over.Load():
		return 0, http.ErrBodyReadAfterClose
	case a.at < b.read && b.gone:
		return 0, errGone
	case a.at < b.read:
		n := copy(p, b.kept[a.at:])
		a.at += int64(n)
		return n, nil
	case b.err != nil:
		return 0, b.err
	}
	n, err := b.client.Read(p)
	b.err = err
	b.read += int64(n)
	a.at = b.read
	b.keepLocked(p[:n])
	return n, err
}

// keepLocked keeps what was read, also by an attempt that is over, for one to come.
func (b *Body) keepLocked(p []byte) {
	if b.read > b.most {
		b.kept, b.gone = nil, b.gone || len(p) > 0
		return
	}
	b.kept = append(b.kept, p...)
}

// Close has the attempt read no more. It neither waits for a read nor closes the client's
// body, which is the server's.
func (a *Attempt) Close() error {
	a.over.Store(true)
	return nil
}
