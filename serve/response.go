package serve

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/lease"
	"github.com/tarehq/tare/serve/internal/sys"
)

// response is the http.ResponseWriter of one request. It offers what net/http's
// offers: Flush, FlushError, Hijack, ReadFrom, WriteString, deadlines and full
// duplex (http.ResponseController), CloseNotify.
//
// Any goroutine may call it at any time. Each method holds exchange.gate, and does
// nothing once the handler has returned: the connection then serves other requests.
type response struct {
	c      *conn
	x      *exchange
	header http.Header // nil until somebody asks for it

	status   int
	declared int64 // Content-Length, -1 = none
	written  int64 // bytes of body that the handler wrote

	told       uint8 // how many fields the answer before it had: a map of more than eight is made at once
	isHead     bool  // the request's method is HEAD
	hasBody    bool  // the request came with one, whatever the handler made of it
	is11       bool
	wants10    bool // HTTP/1.0 that asks for keep-alive
	wantsClose bool
	decided    bool        // WriteHeader was called
	sent       bool        // the head is complete
	done       atomic.Bool // the handler has returned
	chunked    bool
	close      bool // the connection ends after the answer
	duplex     bool // the request's body is left alone
	hijacked   bool
	copying    bool // the kernel copies to the connection, without the gate
}

// enter begins a call by the handler or a goroutine that it started. Unless it
// returns an error, leave ends the call.
func (w *response) enter() (err error) {
	w.x.gate.Lock()
	switch {
	case w.hijacked:
		err = http.ErrHijacked
	case w.done.Load():
		err = lease.ErrOver
	default:
		return nil
	}
	w.x.gate.Unlock()
	return err
}

func (w *response) leave() { w.x.gate.Unlock() }

// retire ends all calls of the writer once the handler has returned. It reports false if
// another goroutine still has the kernel copy to the connection, which then is of no
// more use.
func (x *exchange) retire() bool {
	x.gate.Lock()
	defer x.gate.Unlock()
	x.res.done.Store(true)
	return !x.res.copying
}

// Header returns the answer's header fields. The map is this answer's alone, except in
// Reuse mode: a handler may keep it.
//
// Note: a map that the connection uses again saves two allocations in each answer
// whose handler sets a field. But reading it after the handler's return would end the
// process, while the engine writes the next answer's fields into it.
func (w *response) Header() http.Header {
	w.x.gate.Lock()
	defer w.x.gate.Unlock()
	over := w.done.Load() && !w.hijacked
	switch {
	case over && (w.header == nil || w.c.e.s.Reuse): // the server reads w.header by now
		return http.Header{}
	case w.header != nil:
	case w.c.e.s.Reuse && !w.hijacked:
		w.header = w.c.k.sharedFields()
	default:
		w.header = make(http.Header, w.told)
	}
	return w.header
}

// WriteHeader decides the status. Fields set later do not go out, but trailers.
func (w *response) WriteHeader(status int) {
	switch w.enter() {
	case nil:
		defer w.leave()
		w.writeHeader(status)
	case http.ErrHijacked:
		w.complain("http: response.WriteHeader on hijacked connection")
	}
}

func (w *response) writeHeader(status int) {
	switch {
	case w.decided:
		w.complain("http: superfluous response.WriteHeader call")
		return
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	w.c.reclaim()
	switch {
	case !w.hasBody:
	case status == http.StatusSwitchingProtocols:
		_ = w.x.body.ask() // it has to go first (RFC 9110, 7.8)
	case status == http.StatusContinue || status > 199:
		w.x.body.settle() // no 100 Continue of the server's own after this
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.inform(status)
		return
	}
	w.decided, w.status = true, status
	w.startHead()
	w.release()
}

// complain logs what a handler should not have done, and where it did.
func (w *response) complain(what string) {
	pc := make([]uintptr, 16)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		frame, more := frames.Next()
		ours := strings.Contains(frame.Function, "tare/serve.(*response)") || strings.HasPrefix(frame.Function, "net/http.")
		if !ours || !more {
			w.c.e.s.logf("%s from %s (%s:%d)", what, frame.Function, path.Base(frame.File), frame.Line)
			return
		}
	}
}

// Write adds to the body.
func (w *response) Write(p []byte) (int, error) {
	if err := w.enter(); err != nil {
		if err == http.ErrHijacked && len(p) > 0 {
			w.complain("http: response.Write on hijacked connection")
		}
		return 0, err
	}
	defer w.leave()
	if !w.decided {
		w.writeHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, nil
	case !bodyAllowed(w.status):
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.declared != -1 && w.written > w.declared {
		return 0, http.ErrContentLength
	}
	return w.buffer(p)
}

// WriteString is Write without a copy.
func (w *response) WriteString(s string) (int, error) { return w.Write(sys.Bytes(s)) }

// buffer holds back the first bytes of a body, in the hope that it ends before
// there are more and gets a Content-Length.
func (w *response) buffer(p []byte) (n int, err error) {
	k := w.c.k
	for len(p) > textSize-len(k.text) {
		if len(k.text) == 0 {
			m, err := w.emit(p)
			return n + m, err
		}
		m := textSize - len(k.text)
		k.text = append(k.text, p[:m]...)
		p = p[m:]
		n += m
		if err := w.emitText(); err != nil {
			return n, err
		}
	}
	k.text = append(k.text, p...)
	if w.c.held.Load() != notHeld {
		return n + len(p), nil // what comes of the answers before this one is not known yet
	}
	return n + len(p), w.c.torn
}

func (w *response) emitText() error {
	k := w.c.k
	if len(k.text) == 0 {
		return nil
	}
	_, err := w.emit(k.text)
	k.text = k.text[:0]
	return err
}

// emit sends a piece of the body, which is a chunk of its own where chunks are
// sent.
func (w *response) emit(p []byte) (int, error) {
	c := w.c
	c.reclaim()
	defer w.release()
	if !w.sent {
		w.finishHead(p)
	}
	if w.isHead {
		return len(p), nil
	}
	if !w.chunked {
		if err := c.put(p); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	c.k.out = append(strconv.AppendUint(c.k.out, uint64(len(p)), 16), "\r\n"...)
	if err := c.put(p); err != nil {
		return 0, err
	}
	c.k.out = append(c.k.out, "\r\n"...)
	return len(p), nil
}

// Flush sends what is buffered.
func (w *response) Flush() { w.FlushError() }

// FlushError sends what is buffered and returns what stood against it.
func (w *response) FlushError() error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave()
	return w.flush()
}

func (w *response) flush() error {
	if !w.decided {
		w.writeHeader(http.StatusOK)
	}
	if err := w.emitText(); err != nil {
		return err
	}
	if !w.sent {
		w.finishHead(nil)
	}
	return w.c.flush()
}

// finish completes the answer once the handler has returned. It is written when
// there is no further request in the buffer, or a deadline that is this answer's alone.
func (w *response) finish() {
	c := w.c
	c.reclaim()
	if !w.decided {
		w.writeHeader(http.StatusOK)
	}
	if !w.sent {
		w.finishHead(c.k.text)
	}
	w.emitText()
	if w.chunked && !w.isHead {
		c.k.out = append(c.k.out, "0\r\n"...)
		w.writeTrailers()
		c.k.out = append(c.k.out, "\r\n"...)
	}
	if c.e.s.Reuse {
		clear(w.header)
	}
	if w.close || c.unread.Load() || c.k.r == c.k.w || len(c.k.out) >= bufSize || c.writeBy.Load() != 0 || c.late.Load() != 0 {
		c.flush()
	}
}

// short reports whether the handler wrote less than it declared.
func (w *response) short() bool {
	return !w.isHead && w.declared != -1 && bodyAllowed(w.status) && w.written != w.declared
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// SetReadDeadline sets until when the request's body may be read, in place of
// the server's limits (http.ResponseController).
func (w *response) SetReadDeadline(t time.Time) error {
	return w.setDeadline(&w.c.readBy, t, w.c.nc.SetReadDeadline)
}

// SetWriteDeadline sets until when the answer may be written, in place of the
// server's limits (http.ResponseController).
func (w *response) SetWriteDeadline(t time.Time) error {
	w.c.sendHeld() // answers to earlier requests do not wait for this one's deadline
	return w.setDeadline(&w.c.writeBy, t, w.c.nc.SetWriteDeadline)
}

// setDeadline does not hold the gate: a deadline must reach a call that waits. Either
// it sees that the handler has returned, or settle sees it and takes it off.
func (w *response) setDeadline(own *atomic.Int64, t time.Time, set func(time.Time) error) error {
	if w.done.Load() {
		return lease.ErrOver
	}
	w.c.gate.Lock()
	defer w.c.gate.Unlock()
	at := deadline(t)
	before := own.Swap(at)
	if w.done.Load() {
		own.CompareAndSwap(at, before)
		return lease.ErrOver
	}
	return set(t)
}

func deadline(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return max(1, t.UnixNano())
}

// until is the reverse of deadline; none if the handler has set none.
func until(own int64) time.Time {
	if own <= 0 {
		return noDeadline
	}
	return time.Unix(0, own)
}

// noDeadline is the deadline that is none.
var noDeadline time.Time

// EnableFullDuplex lets the handler read the request's body after it began to
// answer (http.ResponseController).
func (w *response) EnableFullDuplex() error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave()
	w.duplex = true
	return nil
}

// sniffLen is how much of a body decides its Content-Type.
const sniffLen = 512

// ReadFrom copies from src, in the kernel where it is a file and the connection
// TCP.
func (w *response) ReadFrom(src io.Reader) (n int64, err error) {
	to, ok := w.c.nc.(io.ReaderFrom)
	if !ok {
		return io.Copy(onlyWriter{w}, src)
	}
	// The first bytes go the ordinary way, so that an answer does not begin
	// before there is something to send, and its type can be told from it.
	if !w.hasSent() {
		n, err = io.Copy(onlyWriter{w}, io.LimitReader(src, sniffLen))
		if err != nil || n < sniffLen {
			return n, err
		}
	}
	if err := w.FlushError(); err != nil {
		return n, err
	}
	if !sendsFile(src) || !w.beginCopy() {
		m, err := io.Copy(onlyWriter{w}, src)
		return n + m, err
	}
	m, err := w.copyFrom(to, src)
	w.endCopy(m, err)
	n += m
	if err == nil {
		// There is more only if less was declared, which Write then refuses.
		m, err = io.Copy(onlyWriter{w}, src)
		n += m
	}
	return n, err
}

// hasSent reports whether the answer's head is complete. Once the handler has returned it is the
// server's to know.
func (w *response) hasSent() bool {
	w.x.gate.Lock()
	defer w.x.gate.Unlock()
	return !w.done.Load() && w.sent
}

// beginCopy reports whether the kernel may copy the body, and notes that it does. It
// does so without the gate: the source may have nothing to give for a long time.
func (w *response) beginCopy() bool {
	if w.enter() != nil {
		return false
	}
	defer w.leave()
	if w.chunked || w.isHead || !bodyAllowed(w.status) || w.copying {
		return false
	}
	w.copying = true
	return true
}

// endCopy notes what came of copying. It may be the source that failed, such as another
// connection: the handler may go on then. An empty write shows it, which fails where
// any would.
func (w *response) endCopy(n int64, err error) {
	w.x.gate.Lock()
	defer w.x.gate.Unlock()
	w.copying = false
	w.written += n
	if err == nil || w.done.Load() {
		return
	}
	if _, err := w.c.nc.Write(nil); err != nil {
		w.c.fail(err)
	}
}

// sendsFile reports whether the kernel may copy from src to a socket: it has a
// descriptor. (io.Copy wraps an *os.File in a type of its own.)
func sendsFile(src io.Reader) bool {
	if l, ok := src.(*io.LimitedReader); ok {
		src = l.R
	}
	_, ok := src.(syscall.Conn)
	return ok
}

// copyFrom has the connection take src, no more of it than was declared.
func (w *response) copyFrom(to io.ReaderFrom, src io.Reader) (n int64, err error) {
	if w.declared == -1 {
		n, err = w.c.copyFrom(to, src)
	} else {
		part := &io.LimitedReader{R: src, N: w.declared - w.written}
		outer, nested := src.(*io.LimitedReader)
		if nested { // the kernel's way is found behind one limit, not two
			part.R, part.N = outer.R, min(outer.N, part.N)
		}
		n, err = w.c.copyFrom(to, part)
		if nested {
			outer.N -= n
		}
	}
	return n, err
}

type onlyWriter struct{ io.Writer }

// copyFrom has the connection take src, in pieces where nothing else shows how
// much of it the client has taken.
func (c *conn) copyFrom(to io.ReaderFrom, src io.Reader) (n int64, err error) {
	if _, shown := traffic(c.fd); shown {
		return c.copyPiece(to, src)
	}
	return c.copyPieces(to, src)
}

func (c *conn) copyPieces(to io.ReaderFrom, src io.Reader) (n int64, err error) {
	whole, ok := src.(*io.LimitedReader)
	if !ok {
		whole = &io.LimitedReader{R: src, N: math.MaxInt64}
	}
	for whole.N > 0 && err == nil {
		size := min(whole.N, pieceSize)
		var m int64
		m, err = c.copyPiece(to, &io.LimitedReader{R: whole.R, N: size})
		n += m
		whole.N -= m
		if m < size {
			break
		}
	}
	return n, err
}

func (c *conn) copyPiece(to io.ReaderFrom, src io.Reader) (int64, error) {
	c.beginWrite()
	n, err := to.ReadFrom(src)
	c.out.End(c.e.clock.now(), int(n), c.e.limits.window)
	return n, err
}

// Hijack hands the connection to the handler. A goroutine that reads the request's body then
// takes nothing of what comes for the handler: its read ends with a time-out, as net/http's does.
// Later reads of it return http.ErrBodyReadAfterClose.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.enter(); err != nil {
		return nil, nil, err
	}
	defer w.leave()
	if w.hasBody {
		w.x.body.settle()
	}
	if w.decided && !w.sent {
		w.finishHead(nil)
	}
	w.c.flush() // answers to earlier requests may be waiting, too
	w.hijacked = true
	if w.hasBody {
		w.x.body.seize(w.c)
		defer w.x.body.mu.Unlock()
		w.x.body.closed = w.x.body.err != io.EOF // what is left of it comes by the reader
	}
	return w.c.hijack()
}

// ChainSlot returns what the request's context returns, which tells a chain that
// it answers that request (serve/chain).
func (w *response) ChainSlot() *chain.Slot { return w.x.ctx.ChainSlot() }

// CloseNotify returns a channel that tells when the client has gone.
//
// Deprecated: as in net/http, use the request's context.
func (w *response) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	w.x.ctx.AfterFunc(func() {
		if !w.done.Load() {
			gone <- true
		}
	})
	return gone
}
