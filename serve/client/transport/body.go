package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/internal/http1"
)

// body is an answer's body.
type body struct {
	x      *call
	keep   bool        // the connection may be used again
	parted atomic.Bool // who reads, or who closes the body meanwhile, has seen to the connection

	mu      sync.Mutex // Close may come from elsewhere while a read waits
	left    int64      // -1: to the connection's end
	chunked bool
	chunks  http1.Chunks
	rest    []byte // decoded, in the connection's buffer
	err     error  // of the last read
}

var errClosed = errors.New("transport: read on a closed body")

// Read reads of the body. Once it has returned an error the connection is free, or closed.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.read(p)
	if err == nil {
		return n, nil
	}
	return n, b.over(err)
}

// over notes what reading has come to, and lets go of the connection.
func (b *body) over(err error) error {
	if err == io.EOF {
		b.finish()
	} else {
		b.x.c.close()
		b.x.end()
		if cause := context.Cause(b.x.r.Context()); cause != nil {
			err = cause
		}
	}
	b.err = err
	return err
}

func (b *body) read(p []byte) (int, error) {
	if b.chunked {
		return b.readChunks(p)
	}
	if b.left > 0 {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := b.x.c.read(p)
	switch {
	case b.left < 0:
		return n, err
	case err == io.EOF && int64(n) < b.left:
		return n, io.ErrUnexpectedEOF
	case err != nil && int64(n) < b.left:
		return n, err
	case err != nil: // with the last byte, as by TLS: all is there, and the connection has ended
		b.keep = false
	}
	if b.left -= int64(n); b.left == 0 {
		return n, io.EOF
	}
	return n, nil
}

// sized is a body whose length is known.
type sized struct{ *body }

// Pass writes what is left of the body, out of the connection's own buffer, and returns what
// stood against reading it, or against writing it.
func (s sized) Pass(to io.Writer) (reading, writing error) {
	b := s.body
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.err == nil {
		p, err := b.piece()
		if len(p) > 0 {
			if _, err := to.Write(p); err != nil {
				return nil, err
			}
		}
		if err != nil {
			b.over(err)
		}
	}
	if b.err == io.EOF {
		return nil, nil
	}
	return b.err, nil
}

// piece returns what comes next of a body whose length is known, within the connection's
// buffer, and io.EOF with the last of it.
func (b *body) piece() ([]byte, error) {
	c := b.x.c
	if c.r == len(c.buf) {
		if err := c.more(0); err != nil {
			return nil, unexpected(err)
		}
	}
	p := c.buf[c.r:]
	p = p[:min(int64(len(p)), b.left)]
	c.r += len(p)
	if b.left -= int64(len(p)); b.left == 0 {
		return p, io.EOF
	}
	return p, nil
}

// read takes what was read ahead, else reads into p itself.
func (c *conn) read(p []byte) (int, error) {
	if c.r < len(c.buf) {
		n := copy(p, c.buf[c.r:])
		c.r += n
		return n, nil
	}
	c.release()
	return c.receive(p)
}

// readChunks reads as much as is at hand, but waits for the first byte.
func (b *body) readChunks(p []byte) (n int, err error) {
	c := b.x.c
	for {
		m := copy(p[n:], b.rest)
		b.rest = b.rest[m:]
		if n += m; n == len(p) {
			return n, nil
		}
		used, data, done, err := b.chunks.Decode(c.buf[c.r:])
		if err != nil {
			return n, err
		}
		c.r += used
		b.rest = data
		switch {
		case done:
			if err := b.trailers(); err != nil {
				return n, err
			}
			return n, io.EOF
		case used > 0:
			continue
		case n > 0:
			return n, nil
		}
		if err := c.more(headerBytes); err != nil {
			return n, unexpected(err)
		}
	}
}

// trailers reads what follows the last chunk.
func (b *body) trailers() error {
	c := b.x.c
	seen := 0
	for {
		in := c.buf[c.r:]
		if len(in) >= 2 && in[0] == '\r' && in[1] == '\n' {
			c.r += 2
			return nil
		}
		if n := http1.End(in, seen); n > 0 {
			fields := http.Header{}
			if err := http1.Fields(string(in[:n]), fields, &strict); err != nil {
				return err
			}
			c.r += n
			if b.x.res.Trailer == nil {
				b.x.res.Trailer = http.Header{}
			}
			for name, values := range fields {
				b.x.res.Trailer[name] = values
			}
			return nil
		}
		if seen = len(in); seen > headerBytes {
			return errors.New("the answer's trailers are too long")
		}
		if err := c.more(headerBytes); err != nil {
			return unexpected(err)
		}
	}
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// sending is how long a connection waits at the end of an answer for the request's body to
// have been sent, before it is closed: an upstream that answers early may not read the rest.
const sending = 50 * time.Millisecond

// finish ends a call whose answer was read to its end. The connection is kept if nothing
// more has come, and the request has been sent.
func (b *body) finish() {
	x, c := b.x, b.x.c
	keep := b.keep && c.r == len(c.buf)
	x.end()
	if keep && x.sent != nil {
		late := time.NewTimer(sending)
		select {
		case err := <-x.sent:
			keep = err == nil
		case <-late.C:
			keep = false
		}
		late.Stop()
	}
	if !keep || !x.stopped || b.parted.Swap(true) {
		c.close()
		return
	}
	c.h.pool.Keep(c)
}

// Close ends the body. Unless it was read to its end, the connection is closed.
func (b *body) Close() error {
	if !b.mu.TryLock() { // a read waits, and ends as the connection does
		if !b.parted.Swap(true) { // else it has just ended, and the connection may be another call's
			b.x.c.close()
		}
		return nil
	}
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = errClosed
		b.x.c.close()
		b.x.end()
	}
	return nil
}

// switched is the connection once the upstream has changed protocols.
type switched struct {
	net.Conn
	ahead []byte
	free  func() // its place
}

func (s *switched) Read(p []byte) (int, error) {
	if len(s.ahead) > 0 {
		n := copy(p, s.ahead)
		s.ahead = s.ahead[n:]
		return n, nil
	}
	return s.Conn.Read(p)
}

// CloseWrite ends what is sent, if the connection can do that.
func (s *switched) CloseWrite() error {
	if w, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return s.Close()
}

// Close closes the connection.
func (s *switched) Close() error {
	defer s.free()
	return s.Conn.Close()
}
