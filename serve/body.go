package serve

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/tarehq/tare/serve/internal/http1"
)

// body reads a request's body off its connection. As net/http's, it may be read
// by another goroutine than the handler's, also after the handler returned.
type body struct {
	mu      sync.Mutex
	c       *conn
	w       *response
	left    int64 // of a declared length
	chunked bool
	chunks  http1.Chunks
	rest    []byte // decoded, in the connection's buffer
	err     error  // what further reads return
	closed  bool
	// returned says that the handler has returned: another goroutine reads no more.
	returned atomic.Bool
	// promised says that the client asked for 100 Continue at all.
	promised bool

	// asking keeps 100 Continue, other informational answers and the answer
	// apart. It is not mu, which a read holds for as long as the client likes.
	asking sync.Mutex
	// expecting says that the client waits for 100 Continue, which the first
	// read sends.
	expecting bool
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.returned.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if isTimeout(b.err) && !b.chunked {
		b.err = nil // the handler may have moved its deadline since; by net/http chunks end with it all the same
	}
	if b.err == nil {
		b.err = b.ask()
	}
	n, err := b.readLocked(p)
	if b.returned.Load() && isTimeout(err) { // endRead has ended it
		err = http.ErrBodyReadAfterClose
	}
	return n, err
}

// WriteTo spares io.Copy a buffer of its own for each body, where to does not read by itself
// (BenchmarkBody).
func (b *body) WriteTo(to io.Writer) (int64, error) {
	if by, ok := to.(io.ReaderFrom); ok {
		return by.ReadFrom(b)
	}
	through := copying.Get().(*[32 << 10]byte)
	defer copying.Put(through)
	return io.CopyBuffer(to, onlyReader{b}, through[:])
}

var copying = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// endRead ends the read of another goroutine when the handler has returned.
func (b *body) endRead(c *conn) {
	b.returned.Store(true)
	b.seize(c)
	b.mu.Unlock()
}

// seize locks the body, and has the read of another goroutine end for that: nobody waits
// for what the client may never send.
func (b *body) seize(c *conn) {
	if !b.mu.TryLock() {
		c.readUntil(longAgo)
		b.mu.Lock()
		c.readUntil(until(c.readBy.Load()))
	}
}

const continueLine = "HTTP/1.1 100 Continue\r\n\r\n"

// ask sends a pending 100 Continue.
func (b *body) ask() error {
	if !b.promised {
		return nil
	}
	b.asking.Lock()
	defer b.asking.Unlock()
	if !b.expecting {
		return nil
	}
	b.expecting = false
	return b.c.sendNow(continueLine)
}

// settle stops a pending 100 Continue: the answer begins.
func (b *body) settle() {
	b.asking.Lock()
	b.expecting = false
	b.asking.Unlock()
}

// unasked reports whether 100 Continue is pending.
func (b *body) unasked() bool {
	b.asking.Lock()
	defer b.asking.Unlock()
	return b.expecting
}

// Close has further reads fail. As net/http's, it reads what is left if that is little and the
// connection goes on after it, or there may be trailers, and returns what is wrong with that.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.returned.Load() {
		return nil
	}
	b.closed = true
	if b.unasked() || !b.chunked && b.w.wantsClose {
		return nil
	}
	b.drainLocked(b.c.e.limits.drain)
	if b.err == io.EOF {
		return nil
	}
	return b.err
}

func (b *body) readLocked(p []byte) (n int, err error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	case b.chunked:
		n, err = b.readChunked(p)
	default:
		n, err = b.c.read(p[:min(int64(len(p)), b.left)], b.left)
		if b.left -= int64(n); b.left == 0 {
			err = io.EOF
		} else if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	if err == nil {
		return n, nil
	}
	b.err = err
	if err == io.EOF {
		b.c.bodyRead()
	} else if !isTimeout(err) && !malformed(err) {
		b.c.gone()
	}
	return n, err
}

// readChunked fills p as far as a chunk goes, and further with what is at hand,
// the end of the body too: as net/http's, so that a handler which answers with what
// it reads, and by that ends reading, has read as much.
func (b *body) readChunked(p []byte) (n int, err error) {
	k := b.c.k
	for {
		m := copy(p[n:], b.rest)
		b.rest = b.rest[m:]
		if n += m; len(b.rest) > 0 {
			return n, nil // p is full
		}
		used, data, done, err := b.chunks.Decode(k.buf[k.r:k.w])
		if err != nil {
			return n, errMalformedBody
		}
		k.r += used
		b.rest = data
		switch {
		case done:
			if err := b.readTrailer(); err != nil {
				return n, err
			}
			return n, io.EOF
		case used > 0:
			continue
		case n == len(p) || n > 0 && !b.chunks.Within():
			return n, nil
		}
		if err := b.c.more(); err != nil {
			return n, unexpected(err)
		}
	}
}

var (
	errMalformedBody = errors.New("http: malformed chunked encoding")
	errLongTrailer   = errors.New("http: suspiciously long trailer after chunked body")
)

// malformed reports whether err says that the client has sent what is no body. It
// is there yet, and may be told.
func malformed(err error) bool { return err == errMalformedBody || err == errLongTrailer }

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readTrailer reads the trailer section into the request's Trailer.
func (b *body) readTrailer() error {
	k := b.c.k
	seen := 0
	for {
		in := k.buf[k.r:k.w]
		if len(in) >= 2 && in[0] == '\r' && in[1] == '\n' {
			k.r += 2
			return nil
		}
		if n := http1.End(in, seen); n > 0 {
			k.r += n
			return b.addTrailer(string(in[:n]))
		}
		if seen = len(in); seen > b.c.e.limits.headerBytes {
			return errLongTrailer
		}
		if err := b.c.more(); err != nil {
			return unexpected(err)
		}
	}
}

func (b *body) addTrailer(section string) error {
	fields := http.Header{}
	if err := http1.Fields(section, fields, &b.c.e.options); err != nil {
		return errMalformedBody
	}
	if b.w.done.Load() { // another goroutine may read the request
		return nil
	}
	if b.w.x.req.Trailer == nil {
		b.w.x.req.Trailer = fields
		return nil
	}
	for name, values := range fields {
		b.w.x.req.Trailer[name] = values
	}
	return nil
}

// drained is what came of disposing of a body.
type drained int

const (
	drainedAll drained = iota
	drainedNot         // there is too much of it
	drainedBad         // the connection is of no more use
)

// drain reads what the handler left, up to limit bytes (0: none), before the answer is sent:
// many clients read an answer only once they have sent the request.
func (b *body) drain(limit int64) drained {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed && b.err == nil && !b.wholeLocked() {
		return drainedBad // Close has read as much as there is patience for
	}
	how := b.drainLocked(limit)
	if how == drainedAll && !b.promised {
		b.closed = true // a handler that reads on is told, as by net/http
	}
	return how
}

func (b *body) drainLocked(limit int64) drained {
	switch {
	case b.err == io.EOF:
		return drainedAll
	case b.err != nil:
		return drainedBad
	case b.wholeLocked():
		b.c.k.r += int(b.left)
		b.left, b.err = 0, io.EOF
		b.c.bodyRead()
		return drainedAll
	case !b.chunked && limit > 0 && b.left >= limit:
		return drainedNot
	}
	var scrap [4 << 10]byte
	for total := int64(0); ; {
		n, err := b.readLocked(scrap[:])
		if total += int64(n); err == io.EOF {
			return drainedAll
		}
		if err != nil {
			return drainedBad
		}
		if limit > 0 && total > limit {
			return drainedNot
		}
	}
}

// wholeLocked reports whether the body is at hand, so that leaving it unread
// costs the connection nothing.
func (b *body) wholeLocked() bool {
	return !b.chunked && b.left <= int64(b.c.k.w-b.c.k.r)
}

// tryFinish is finish, unless another goroutine reads the body.
func (b *body) tryFinish() bool {
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	b.finishLocked()
	return true
}

// finish detaches the body from its connection, which goes on without it, and
// returns what came of reading: io.EOF if it was read to its end.
func (b *body) finish() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finishLocked()
}

func (b *body) finishLocked() error {
	b.closed = true
	b.c, b.w = nil, nil
	return b.err
}
