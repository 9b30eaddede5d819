package serve

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"runtime/trace"
	"strings"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/sys"
)

// exchange is all the memory of one request and its answer, in one allocation.
// A handler may keep any of it: it is made afresh for each request, but in Reuse
// mode, where a connection has one.
type exchange struct {
	req    sys.RoomyRequest
	url    url.URL
	ctx    requestContext
	body   body
	res    response
	values [12]string // of header fields that come once
}

// chained is an exchange with the state of the chain that handles it, so that the
// chain allocates nothing either.
type chained struct {
	exchange
	state chain.State
}

// exchange makes the memory of one request. That requests go through a chain,
// behind a router perhaps, is known once one did.
func (e *engine) exchange() *exchange {
	if !e.chained.Load() {
		return new(exchange)
	}
	x := new(chained)
	x.ctx.slot = &x.state
	return &x.exchange
}

// blank is copied for each request; with it goes no allocation.
func blank(ctx context.Context) http.Request {
	var r http.Request
	return *r.WithContext(ctx)
}

// abandon ends an exchange that a panic cut short.
func (x *exchange) abandon() {
	x.ctx.end(context.Canceled)
	x.body.mu.Lock()
	x.body.closed = true
	x.body.mu.Unlock()
	x.res.over = true
}

// forget drops what belongs to a connection, before its buffers go to another.
func (x *exchange) forget() {
	x.req, x.url = sys.RoomyRequest{}, url.URL{}
	x.ctx.Context, x.ctx.c = nil, nil
	x.ctx.renew()
	x.res = response{}
	x.values = [12]string{}
}

// parse takes the next request's head from the buffer. It reports false if that
// is not there yet, and an error if it is refused.
func (c *conn) parse() (bool, error) {
	k := c.k
	if k.seen <= 1 {
		k.skip()
	}
	b := k.buf[k.r:k.w]
	if len(b) == 0 {
		return false, nil
	}
	if b[0] == tlsRecord && c.tls == nil {
		return false, errTLS
	}
	n := http1.End(b, k.seen)
	if n == 0 && len(b) <= c.e.limits.headerBytes {
		k.seen = len(b)
		if phase(c.phase.Load()) != phaseHeading {
			c.heading()
			c.active()
		}
		return false, nil
	}
	if n == 0 || n > c.e.limits.headerBytes {
		return false, http1.TooLong(b[:min(len(b), c.e.limits.headerBytes)])
	}
	if phase(c.phase.Load()) != phaseHeading {
		c.began.Store(c.e.clock.now())
		c.active()
	}
	c.begin(phaseHandling)
	k.seen, k.skipped = 0, 0
	k.r += n
	return true, c.request(b[:n])
}

// heading notes that a head has begun to come.
func (c *conn) heading() {
	c.begin(phaseHeading)
	c.began.Store(c.since.Load())
}

// skip drops empty lines before a request, of which few are forgiven, however
// they come.
func (k *buffers) skip() {
	const most = 2 * len("\r\n")
	n := min(http1.Skip(k.buf[k.r:k.w]), most-k.skipped)
	if n > 0 {
		k.r += n
		k.skipped += n
		k.seen = 0
	}
}

// active tells of a request's first byte.
func (c *conn) active() {
	if c.e.s.ConnState != nil {
		c.setState(http.StateActive)
	}
}

// tlsRecord is the first byte of a TLS handshake. A client that takes this for a
// TLS port would wait for an answer, and get none until it gives up.
const tlsRecord = 0x16

var errTLS = &http1.Error{Status: http.StatusBadRequest, Reason: "TLS where HTTP is spoken"}

// request makes the request and the response of a head.
func (c *conn) request(head []byte) error {
	k := c.k
	var text string
	if c.e.s.Reuse {
		if k.x == nil || k.x.ctx.tied() {
			k.x = new(exchange)
		}
		if k.inward == nil {
			k.inward = make(http.Header, 16)
		}
		clear(k.inward)
		k.pin = k.r
		text = sys.String(head)
	} else {
		k.x = c.e.exchange()
		k.inward = make(http.Header, max(0, bytes.Count(head, lineEnd)-3))
		text = string(head)
	}
	x := k.x
	if err := k.head.Parse(text, k.inward, x.values[:0], &c.e.options); err != nil {
		return err
	}
	if c.e.s.Reuse {
		x.ctx.renew()
	}
	x.ctx.Context, x.ctx.c = c.ctx, c
	x.req.Request = blank(&x.ctx)
	c.e.fields.Reserve(&x.req)
	return c.fillIn(x)
}

// lineEnd ends a line. Counting them says how large a map the fields need, which
// are all but the request line, Host and the empty line: one that grows past
// eight is made twice (BenchmarkServer/request=browser).
var lineEnd = []byte{'\n'}

// fillIn sets the request's fields as net/http does.
func (c *conn) fillIn(x *exchange) error {
	h, r := &c.k.head, &x.req.Request
	r.Method, r.RequestURI = h.Method, h.Target
	r.Proto, r.ProtoMajor, r.ProtoMinor = h.Proto, 1, h.Minor
	r.Header, r.Host, r.RemoteAddr, r.TLS = c.k.inward, h.Host, c.remote, c.tls
	r.ContentLength = h.Length
	r.Close = h.Close || h.Minor == 0 && !h.KeepAlive
	if h.Preface { // the handler may take the connection over, else it ends
		r.ProtoMajor, r.ContentLength, r.Close = 2, -1, true
	}
	r.URL = &x.url
	if err := http1.URL(r.URL, h.Method, h.Target); err != nil {
		return err
	}
	if r.URL.Host != "" {
		r.Host = r.URL.Host
	}
	if h.Length == 0 {
		r.Body = http.NoBody
	} else {
		x.body.open(c, x)
		r.Body = &x.body
	}
	if h.Length < 0 {
		r.TransferEncoding = []string{"chunked"}
		if h.HasTrailer {
			if err := announceTrailers(r); err != nil {
				return err
			}
		}
	}
	x.res = response{
		c: c, x: x, req: r, declared: -1,
		isHead: h.Method == http.MethodHead, hasBody: h.Length != 0, is11: h.Minor == 1 || h.Preface,
		wants10: h.Minor == 0 && h.KeepAlive, wantsClose: r.Close,
	}
	return nil
}

// open readies the body for the request at hand.
func (b *body) open(c *conn, x *exchange) {
	h := &c.k.head
	c.unread.Store(true)
	b.c, b.w = c, &x.res
	b.left, b.chunked = h.Length, h.Length < 0
	b.chunks, b.rest, b.err, b.closed = http1.Chunks{}, nil, nil, false
	b.promised = h.Expect == http1.Continue && h.Minor == 1
	b.expecting = b.promised
}

// announceTrailers moves the names of trailers to come to Request.Trailer. As
// net/http it refuses those that frame the message.
func announceTrailers(r *http.Request) error {
	r.Trailer = http.Header{}
	for _, list := range r.Header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			switch name {
			case "":
				continue
			case "Transfer-Encoding", "Trailer", "Content-Length":
				return errTrailerName
			}
			r.Trailer[name] = nil
		}
	}
	delete(r.Header, "Trailer")
	return nil
}

var errTrailerName = &http1.Error{Status: http.StatusBadRequest, Reason: "field not allowed in a trailer section"}

// handle answers the request at hand.
func (c *conn) handle() outcome {
	if trace.IsEnabled() { // the tracer does not see this engine read and write
		trace.Log(context.Background(), "tare/serve", "request")
	}
	x := c.k.x
	w := &x.res
	if w.hasBody && !x.body.wholeLocked() {
		c.flush() // a client may send the body only once it has the answers before
	}
	if c.k.head.Expect == http1.OtherExpect {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusExpectationFailed)
	} else {
		c.dispatch(w, &x.req.Request)
	}
	if c.left {
		x.body.finish()
		x.ctx.end(context.Canceled)
		return goLeft
	}
	if x.ctx.slot != nil && !c.e.chained.Load() {
		_, used := x.ctx.slot.(*chain.State)
		c.e.chained.Store(used)
	}
	w.finish()
	x.ctx.end(context.Canceled)
	c.cur.Store(nil)
	c.unpeek()
	return c.settle(x)
}

func (c *conn) dispatch(w http.ResponseWriter, r *http.Request) {
	if r.RequestURI == "*" && r.Method == http.MethodOptions && !c.e.s.DisableGeneralOptionsHandler {
		answerOptions(w, r)
		return
	}
	c.e.handler.ServeHTTP(w, r)
}

// answerOptions answers OPTIONS *, reading a small body and no more.
func answerOptions(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "0")
	if r.ContentLength != 0 {
		io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 4<<10))
	}
}

// settle decides whether the connection goes on after an answer.
func (c *conn) settle(x *exchange) outcome {
	w := &x.res
	read := io.EOF
	if w.hasBody {
		read = x.body.finish()
	}
	if form := x.req.MultipartForm; form != nil {
		form.RemoveAll()
	}
	w.over = true
	c.k.pin = 0
	if c.readBy.Swap(0) != 0 || c.nudged.Load() {
		c.readUntil(noDeadline)
	}
	if c.writeBy.Load() != 0 || c.late.Load() || c.stirred.Load() {
		c.writeBy.Store(0)
		c.late.Store(false)
		c.stirred.Store(false)
		c.nc.SetWriteDeadline(noDeadline)
	}
	switch {
	case c.failed != nil || w.short():
		return goEnd
	case read == nil || read == errMalformedBody || read != io.EOF && isTimeout(read):
		return goLinger
	case read != io.EOF:
		return goEnd
	case w.close && (!w.wantsClose || c.k.r < c.k.w):
		return goLinger // the client may have sent a further request
	case w.close:
		return goEnd
	}
	if c.e.hooked {
		c.setState(http.StateIdle)
		c.readUntil(noDeadline) // what hooks and handlers have set on the net.Conn holds for one request
	}
	return goOn
}
