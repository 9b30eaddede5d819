// Package carry copies answers' bodies.
package carry

import (
	"errors"
	"io"
	"sync"
	"time"
)

// pieces are the buffers that answers are copied by. A handler has one while it copies.
type piece [32 << 10]byte

var pieces = sync.Pool{New: func() any { return new(piece) }}

// Body passes an answer's body on. It returns what stood against reading it, or against writing.
// flush is called after each piece but the last, if it is set. A body of which nothing comes for
// as long as pause is closed. 0: it may pause for ever.
func Body(to io.Writer, from io.ReadCloser, flush func() error, pause time.Duration) (upstream, client error) {
	if own, ok := from.(interface {
		Pass(io.Writer) (read, write error)
	}); ok && flush == nil && pause <= 0 {
		return own.Pass(to)
	}
	if pause > 0 {
		from = &watched{ReadCloser: from, pause: pause, closed: make(chan struct{})}
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

// watched is a body that is closed if a read of it takes too long. What is read of it then ends
// with an error.
type watched struct {
	io.ReadCloser
	pause  time.Duration
	timer  *time.Timer // closes it
	closed chan struct{}
}

var errPause = errors.New("the body has paused for too long")

func (b *watched) Read(p []byte) (int, error) {
	if b.timer == nil {
		b.timer = time.AfterFunc(b.pause, func() {
			_ = b.Close() // the read has an error
			close(b.closed)
		})
	} else {
		b.timer.Reset(b.pause)
	}
	n, err := b.ReadCloser.Read(p)
	if b.timer.Stop() {
		return n, err
	}
	<-b.closed         // the body's memory may be used again once it was read
	return n, errPause // also at its end: an upstream may end an answer since its client goes
}
