package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve/client/transport/internal/handshake"
	"github.com/tarehq/tare/serve/client/transport/internal/request"
	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/sys"
	"github.com/tarehq/tare/serve/internal/wrapped"
)

// buffer is what heads are written to and answers read into. A connection that waits has
// none. An answer of 64 KiB fits, with its head.
type buffer [68 << 10]byte

var bufs = sync.Pool{New: func() any { return new(buffer) }}

// small is the largest body that is written together with its head.
const small = 8 << 10

// conn is a connection. One goroutine uses it at a time, but for a body's sender.
type conn struct {
	t      *Transport
	h      *host
	nc     net.Conn
	raw    syscall.RawConn // nil: it shows none
	socket *socket         // nc is that socket, which is read and written by raw; nil: it may be more
	secure *tls.Conn       // nc; nil: it is without TLS
	state  *tls.ConnectionState
	reused bool
	due    atomic.Int64 // when the answer's header has to be there: see host.limit

	unsent []byte // of a request; it goes before an answer is waited for
	buf    []byte // read and not used yet: from r on
	r      int
	room   []byte // what buf lies in
}

func newConn(t *Transport, h *host, nc net.Conn) *conn {
	c := &conn{t: t, h: h, nc: nc}
	if c.raw = wrapped.Socket(nc); c.raw != nil {
		c.socket = newSocket(c)
	} else if s, ok := nc.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	h.mu.Lock()
	h.conns[c] = struct{}{}
	h.mu.Unlock()
	return c
}

// close closes the connection. It may be called more than once.
func (c *conn) close() {
	was := c.forget()
	c.nc.Close()
	if was {
		c.h.pool.Free()
	}
}

// forget takes the connection out of its host's, and reports whether it was one of them.
func (c *conn) forget() (was bool) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	_, was = c.h.conns[c]
	delete(c.h.conns, c)
	return was
}

// fits reports whether an idle connection is of use for a request. For one without a body
// that can wait until it is sent: it goes on another connection then.
func (c *conn) fits(r *http.Request) bool { return c.socket != nil && !request.HasBody(r) || c.quiet() }

// quiet reports whether an idle connection is of use: neither has it ended, nor has
// anything come that nobody has asked for.
func (c *conn) quiet() bool {
	come, err := c.come()
	if come && err == nil && c.secure != nil && handshake.Settle(c.secure) {
		come, err = c.come()
	}
	return err == nil && !come && (c.secure == nil || !handshake.Holds(c.secure))
}

// come reports whether there is something to read, as far as that can be seen.
func (c *conn) come() (readable bool, err error) {
	if c.raw != nil {
		err = c.raw.Control(func(fd uintptr) { readable = sys.Readable(fd) })
	}
	return readable, err
}

// call is one request on a connection, with its answer.
type call struct {
	c       *conn
	r       *http.Request
	hints   Hints
	cut     func()        // interrupt, made once
	stop    func() bool   // the context ends the call no more
	stopped bool          // and has not
	sent    chan error    // what became of sending the body; nil: it was sent
	proceed chan struct{} // closed once a body that waits for 100 is wanted; nil: none waits
	over    chan struct{} // closed once it is not wanted

	mu       sync.Mutex
	answered bool // the header's time is no longer counted
	hurried  bool // a write of the body has a time

	res  http.Response
	body body
}

// Memory holds a call and its answer, for reuse by callers that make one call after the other.
// The zero value is ready to use.
type Memory struct{ x call }

// Clear readies it for a next call, and reports whether there may be one: nobody uses the one
// before any more. Its answer is not to be used then.
func (m *Memory) Clear() bool {
	if x := &m.x; x.c != nil && (!x.stopped || x.sent != nil) {
		return false
	}
	m.x = call{cut: m.x.cut}
	return true
}

// newCall returns a call, in the caller's memory if there is some.
func newCall(c *conn, r *http.Request, hints Hints) *call {
	m := hints.Memory()
	if m == nil {
		m = new(Memory)
	}
	x := &m.x
	if x.cut == nil {
		x.cut = x.interrupt
	}
	*x = call{c: c, r: r, hints: hints, cut: x.cut, stop: neverCut}
	switch ctx := r.Context().(type) {
	case interface{ AfterFunc(func()) func() bool }: // which context.AfterFunc would call, with a context of its own
		x.stop = ctx.AfterFunc(x.cut)
	default:
		if r.Context().Done() != nil {
			x.stop = context.AfterFunc(r.Context(), x.cut)
		}
	}
	return x
}

func neverCut() bool { return true }

// exchange sends a request and reads the head of its answer.
func (c *conn) exchange(r *http.Request, hints Hints) (*http.Response, error) {
	x := newCall(c, r, hints)
	err := x.begin()
	var res *http.Response
	if err == nil {
		res, err = x.answer()
	}
	if err == nil {
		return res, nil
	}
	again := err == errStale && c.reused && !request.HasBody(r)
	if !again {
		c.close()
	}
	x.end()
	if again && x.stopped {
		return nil, err // who sends it again closes the connection
	}
	c.close()
	if err == errStale {
		err = errEnded
	}
	if x.sent == nil {
		closeBody(r) // else the sender does
	}
	return nil, x.explain(err)
}

// interrupt ends what waits on the connection.
func (x *call) interrupt() { x.c.nc.SetDeadline(longAgo) }

var longAgo = time.Unix(1, 0)

// explain returns why a call failed: because of its context or the request's body, if so.
func (x *call) explain(err error) error {
	if cause := context.Cause(x.r.Context()); cause != nil {
		return cause
	}
	if x.sent != nil {
		select {
		case sent := <-x.sent:
			if body, ok := errors.AsType[*request.BodyError](sent); ok {
				return body
			}
			if errors.Is(sent, os.ErrDeadlineExceeded) {
				return &timeoutError{}
			}
		default:
		}
	}
	if x.c.reused && (err == io.EOF || err == errEnded || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		return &EndedError{err}
	}
	return err
}

// begin has the head be sent, and the body if it is small or there is none. A larger one is
// sent by a goroutine, so that an answer that comes before its end is read.
func (x *call) begin() error {
	c := x.c
	c.takeRoom()
	head, chunked := request.AppendHead(c.room[:0], x.r)
	body := request.HasBody(x.r)
	if body && !chunked && x.r.ContentLength <= small && x.r.Header["Expect"] == nil {
		var err error
		head, err = request.AppendBody(head, x.r)
		x.r.Body.Close()
		if err != nil {
			return &request.BodyError{Err: err}
		}
		body = false
	}
	if body {
		if _, err := c.nc.Write(head); err != nil {
			return err
		}
		x.startSending(chunked)
		return nil
	}
	c.unsent = head // into what answers are read into, once it is gone
	x.limitHeader()
	return nil
}

// limitHeader has the answer's header come within its time from now on. The request was sent.
func (x *call) limitHeader() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.unlimitWriteLocked()
	d := x.hints.HeaderTimeout()
	if d <= 0 {
		d = cmp.Or(x.c.t.HeaderTimeout, headerTimeout)
	}
	if d > 0 && !x.answered {
		x.c.h.limit(x.c, d)
	}
}

// unlimit has the header's time not be the body's, unless it is over.
func (x *call) unlimit() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answered = true
	x.unlimitWriteLocked()
	if x.c.due.Swap(0) == lapsed {
		return &timeoutError{}
	}
	return nil
}

// startSending has a goroutine send the body, after 100 Continue if that is waited for: a
// second at most, as an upstream may not know it.
func (x *call) startSending(chunked bool) {
	x.sent, x.over = make(chan error, 1), make(chan struct{})
	var proceed chan struct{}
	if strings.EqualFold(x.r.Header.Get("Expect"), "100-continue") {
		proceed = make(chan struct{})
		x.proceed = proceed
	}
	r := *x.r // who asked may change the request once the exchange has failed
	go func() {
		if proceed != nil && !wanted(proceed, x.over) {
			closeBody(&r)
			x.sent <- errUnwanted
			return
		}
		err := request.Send(patient{x}, &r, chunked)
		var unread *request.BodyError
		switch {
		case err == nil:
			x.limitHeader()
		case errors.As(err, &unread), errors.Is(err, os.ErrDeadlineExceeded):
			defer x.c.close() // no answer comes to half a request
		}
		x.sent <- err
	}()
}

// patient writes a body. Until the answer comes each write has a time: a host that takes nothing
// would never be known to be ill.
type patient struct{ x *call }

func (p patient) Write(b []byte) (int, error) {
	p.x.limitWrite()
	return p.x.c.nc.Write(b)
}

func (x *call) limitWrite() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if d := cmp.Or(x.c.t.HeaderTimeout, headerTimeout); d > 0 && !x.answered {
		x.hurried = true
		_ = x.c.nc.SetWriteDeadline(time.Now().Add(d)) // if it fails, so does the write
	}
}

func (x *call) unlimitWriteLocked() {
	if x.hurried {
		x.hurried = false
		_ = x.c.nc.SetWriteDeadline(time.Time{}) // if it fails, the connection was closed
	}
}

var errUnwanted = errors.New("the request's body is not wanted")

// wanted waits until a body that waits for 100 is wanted, or not.
func wanted(proceed, over <-chan struct{}) bool {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-proceed:
	case <-late.C:
	case <-over:
		return false
	}
	return true
}

// mostNews is how many informational answers may come before the answer.
const mostNews = 100

// answer reads heads until one is not informational.
func (x *call) answer() (*http.Response, error) {
	for range mostNews {
		var a http1.Answer
		header := x.hints.Header()
		if header == nil {
			header = make(http.Header, 8)
		}
		if err := x.c.head(&a, header); err != nil {
			return nil, err
		}
		switch {
		case a.Status >= 200 || a.Status == http.StatusSwitchingProtocols:
			return x.response(&a, header)
		case a.Status == http.StatusContinue && x.proceed != nil:
			close(x.proceed)
			x.proceed = nil
		}
		if err := x.hints.Inform(a.Status, header); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("more than %d informational answers", mostNews)
}

// response makes the answer that the caller gets.
func (x *call) response(a *http1.Answer, header http.Header) (*http.Response, error) {
	if err := x.unlimit(); err != nil {
		return nil, err
	}
	res := &x.res
	res.Status, res.StatusCode, res.Proto, res.ProtoMajor, res.ProtoMinor = a.Text, a.Status, a.Proto, 1, a.Minor
	res.TLS = x.c.state
	res.Header, res.Request, res.Close = header, x.r, a.Close || a.Minor == 0 && !a.KeepAlive
	x.refuseBody()
	if a.Status == http.StatusSwitchingProtocols {
		return res, x.switchTo(res)
	}
	b := &x.body
	b.x, b.keep = x, !res.Close && !x.r.Close
	res.Body = b
	switch {
	case x.r.Method == http.MethodHead, a.Status == http.StatusNoContent, a.Status == http.StatusNotModified, a.HasLength && a.Length == 0:
		if x.r.Method == http.MethodHead {
			if res.ContentLength = -1; a.HasLength {
				res.ContentLength = a.Length
			}
		}
		res.Body = http.NoBody
		b.finish()
	case a.HasLength:
		res.Body, b.left, res.ContentLength = sized{b}, a.Length, a.Length
	case a.Length == http1.Chunked:
		b.chunked, res.ContentLength = true, -1
		res.TransferEncoding = []string{"chunked"}
		res.Trailer = announced(header)
	default:
		b.keep, b.left, res.ContentLength = false, -1, -1
	}
	return res, nil
}

// refuseBody has a body that waits for 100 Continue not be sent.
func (x *call) refuseBody() {
	if x.proceed != nil {
		close(x.over)
		x.proceed = nil
	}
}

// switchTo gives the connection to the caller, who speaks another protocol on it.
func (x *call) switchTo(res *http.Response) error {
	if !x.stop() {
		return context.Canceled
	}
	c := x.c
	c.forget() // its place stays taken
	res.Body = &switched{Conn: c.nc, ahead: append([]byte(nil), c.buf[c.r:]...), free: sync.OnceFunc(c.h.pool.Free)}
	c.release()
	return nil
}

// announced are the trailers that are to come.
func announced(header http.Header) http.Header {
	lines := header["Trailer"]
	if lines == nil {
		return nil
	}
	delete(header, "Trailer")
	all := http.Header{}
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(strings.Trim(name, " \t")); name != "" && name != "Content-Length" && name != "Transfer-Encoding" {
				all[name] = nil
			}
		}
	}
	return all
}

// end frees what the call has taken of its connection.
func (x *call) end() {
	x.stopped = x.stop()
	x.refuseBody()
	x.c.release()
}

var strict http1.Options

// head reads one head.
func (c *conn) head(a *http1.Answer, header http.Header) error {
	most := cmp.Or(c.t.HeaderBytes, headerBytes)
	seen := 0
	for {
		if n := http1.End(c.buf[c.r:], seen); n > 0 {
			text := string(c.buf[c.r : c.r+n])
			c.r += n
			return a.Parse(text, header, &strict)
		}
		if seen = len(c.buf) - c.r; seen >= most {
			return fmt.Errorf("the answer's header has more than %d bytes", most)
		}
		if err := c.more(most); err != nil {
			if err == io.EOF && seen > 0 {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

// takeRoom has the connection have a buffer.
func (c *conn) takeRoom() {
	if c.room == nil {
		b := bufs.Get().(*buffer)
		c.room, c.buf, c.r = b[:], b[:0], 0
	}
}

// more reads what is there, into room for at most so many bytes that are not used.
func (c *conn) more(most int) error {
	if c.r == len(c.buf) {
		n, err := c.receive(nil)
		if n > 0 {
			c.buf, c.r = c.room[:n], 0
		}
		return came(n, err)
	}
	if len(c.buf) == cap(c.buf) {
		left := c.buf[c.r:]
		if c.r == 0 {
			c.room = make([]byte, min(2*len(c.room), max(most, len(c.room)+1)))
		}
		c.buf, c.r = c.room[:copy(c.room, left)], 0
	}
	n, err := c.receive(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	return came(n, err)
}

// came returns what is wrong with having read so much.
func came(n int, err error) error {
	switch {
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &timeoutError{}
	}
	return err
}

// receivePlainly is receive by the connection's own methods.
func (c *conn) receivePlainly(p []byte) (int, error) {
	if out := c.unsent; len(out) > 0 {
		c.unsent = nil
		if n, err := c.nc.Write(out); err != nil && n == 0 {
			return 0, errStale
		} else if err != nil {
			return 0, err
		}
	}
	if p == nil {
		c.takeRoom()
		p = c.room
	}
	return c.nc.Read(p)
}

// release gives the buffer back.
func (c *conn) release() {
	if len(c.room) == len(buffer{}) {
		bufs.Put((*buffer)(c.room))
	}
	c.room, c.buf, c.r, c.unsent = nil, nil, 0, nil
}

// timeoutError says that an answer's header has not come in time.
type timeoutError struct{}

func (*timeoutError) Error() string   { return "no answer in time" }
func (*timeoutError) Timeout() bool   { return true }
func (*timeoutError) Temporary() bool { return true }
func (*timeoutError) Unwrap() error   { return os.ErrDeadlineExceeded }
