package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// body is a request's body. One attempt after the other reads it: each begins with what
// was kept of what those before it have read.
type body struct {
	mu     sync.Mutex
	client io.Reader
	most   int64  // bytes that are kept
	read   int64  // bytes that the client has sent
	kept   []byte // all of them, unless gone
	gone   bool   // there were more than are kept
	err    error  // of the client: io.EOF at the body's end
}

var errGone = errors.New("what was read of the request's body cannot be sent again")

// repeatable reports whether another attempt can send the body. It does not wait for an
// attempt that still reads.
func (b *body) repeatable() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return !b.gone && (b.err == nil || b.err == io.EOF)
}

// broken reports whether the client has broken the body off.
func (b *body) broken() bool {
	if !b.mu.TryLock() {
		return false // it goes on
	}
	defer b.mu.Unlock()
	return b.err != nil && b.err != io.EOF
}

func (b *body) attempt() *attemptBody { return &attemptBody{b: b} }

// attemptBody is the body as one attempt reads it.
type attemptBody struct {
	b    *body
	at   int64 // bytes that it has read
	over atomic.Bool
}

func (a *attemptBody) Read(p []byte) (int, error) {
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
func (b *body) keepLocked(p []byte) {
	if b.read > b.most {
		b.kept, b.gone = nil, b.gone || len(p) > 0
		return
	}
	b.kept = append(b.kept, p...)
}

// Close has the attempt read no more. It neither waits for a read nor closes the client's
// body, which is the server's.
func (a *attemptBody) Close() error {
	a.over.Store(true)
	return nil
}

// pieces are the buffers that answers are copied by. A handler has one while it copies.
type piece [32 << 10]byte

var pieces = sync.Pool{New: func() any { return new(piece) }}

// copyBody passes an answer's body on. flush is called after each piece but the last, if it
// is set.
func copyBody(to io.Writer, from io.Reader, flush func() error) (upstream, client error) {
	if own, ok := from.(interface {
		Pass(io.Writer) (read, write error)
	}); ok && flush == nil {
		return own.Pass(to)
	}
	buf := pieces.Get().(*piece)
	defer pieces.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return nil, werr
			}
			if flush != nil && err == nil { // the end is sent with what came before it
				if werr := flush(); werr != nil {
					return nil, werr
				}
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil, nil
		default:
			return err, nil
		}
	}
}
