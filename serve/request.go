package serve

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"runtime/trace"
	"strings"
	"sync"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/sys"
)

// exchange is all the memory of one request and its answer, in one allocation.
// A handler may keep any of it: it is made afresh for each request, but in Reuse
// mode, where a connection has one. It is no larger than it has to be, since every
// byte has to be cleared, and collected (BenchmarkServer/request=get/pipelined=16).
type exchange struct {
	req  *http.Request // beside it, in one of the following
	url  url.URL
	ctx  requestContext
	body *body      // nil for a request without one
	gate sync.Mutex // held by each call of the writer
	res  response
}

// plain is for a request that has no fields but Host, and so no body either.
type plain struct {
	exchange
	request http.Request
}

// lean is for one with few fields whose method promises no body, such as most GETs.
type lean struct {
	exchange
	request http.Request
	values  [leanRoom]string
}

// fielded has room for the values of many fields that come once, and for a body.
type fielded struct {
	exchange
	request http.Request
	content body
	values  [fieldRoom]string
}

// routed is lean with room for the path values of a router.
type routed struct {
	exchange
	request sys.RoomyRequest
	values  [leanRoom]string
}

// routedFielded is fielded with that room.
type routedFielded struct {
	exchange
	request sys.RoomyRequest
	content body
	values  [fieldRoom]string
}

// chained has the state of the chain that handles the request, too, so that the
// chain allocates nothing either.
type chained struct {
	routed
	state chain.State
}

// chainedFielded is routedFielded with that state.
type chainedFielded struct {
	routedFielded
	state chain.State
}

// crowded has room for more values of that chain.
type crowded struct {
	chainedFielded
	more chain.Room
}

const (
	leanRoom  = 4
	fieldRoom = 12
)

// renew makes the memory of one request with about so many fields. That requests
// are routed, or go through a chain, is known once one was or did.
func (k *buffers) renew(e *engine, head []byte, fields int) {
	few := fields <= leanRoom && head[0] != 'P' // POST, PUT, PATCH
	switch {
	case e.crowded.Load():
		x := new(crowded)
		x.state.Lend(&x.more)
		x.ctx.slot.Store(&x.state)
		k.use(&x.exchange, &x.request, &x.content, x.values[:0])
	case e.chained.Load() && few:
		x := new(chained)
		x.ctx.slot.Store(&x.state)
		k.use(&x.exchange, &x.request, nil, x.values[:0])
	case e.chained.Load():
		x := new(chainedFielded)
		x.ctx.slot.Store(&x.state)
		k.use(&x.exchange, &x.request, &x.content, x.values[:0])
	case e.routed.Load() && few:
		x := new(routed)
		k.use(&x.exchange, &x.request, nil, x.values[:0])
	case e.routed.Load():
		x := new(routedFielded)
		k.use(&x.exchange, &x.request, &x.content, x.values[:0])
	case fields == 0:
		x := new(plain)
		x.req = &x.request
		k.use(&x.exchange, nil, nil, nil)
	case few:
		x := new(lean)
		x.req = &x.request
		k.use(&x.exchange, nil, nil, x.values[:0])
	default:
		x := new(fielded)
		x.req = &x.request
		k.use(&x.exchange, nil, &x.content, x.values[:0])
	}
}

// use takes the memory of a request, with its parts as far as it has them.
func (k *buffers) use(x *exchange, roomy *sys.RoomyRequest, content *body, values []string) {
	if roomy != nil {
		x.req = &roomy.Request
	}
	x.body = content
	k.x, k.roomy, k.values = x, roomy, values
}

// sharedFields returns the map for the fields of all answers, in Reuse mode.
func (k *buffers) sharedFields() http.Header {
	if k.fields == nil {
		k.fields = make(http.Header, 4)
	}
	return k.fields
}

// abandon ends an exchange that a panic cut short.
func (x *exchange) abandon(c *conn) {
	x.ctx.end(context.Canceled)
	if x.res.hasBody {
		x.body.endRead(c)
		x.body.finish()
	}
}

// letGo ends the part of the engine in a request whose handler has the connection now.
// The handler commonly has the request, too: its buffers are not kept for that.
func (c *conn) letGo(x *exchange) {
	if x != nil {
		x.ctx.end(context.Canceled)
	}
	if x == nil || !x.res.hasBody || x.body.tryFinish() {
		c.k = nil
	}
}

// forget drops what belongs to a connection, before the buffers go to another.
func (k *buffers) forget() {
	x := k.x
	*k.roomy, x.url = sys.RoomyRequest{}, url.URL{}
	x.ctx.Context, x.ctx.c = nil, nil
	x.ctx.renew()
	x.res = response{}
	clear(k.values[:fieldRoom])
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
		if c.at().phase() != phaseHeading {
			c.active()
		}
		return false, errTLS
	}
	n := http1.End(b, k.seen)
	if n == 0 && len(b) <= c.e.limits.headerBytes {
		err := http1.Early(b, k.seen, &c.e.options)
		k.seen = len(b)
		if c.at().phase() != phaseHeading {
			c.heading()
			c.active()
		}
		return false, err
	}
	if n == 0 || n > c.e.limits.headerBytes {
		if c.at().phase() != phaseHeading {
			c.active()
		}
		return false, http1.TooLong(b[:min(len(b), c.e.limits.headerBytes)])
	}
	if c.at().phase() != phaseHeading {
		c.began.Store(c.e.clock.now())
		c.active()
	}
	if !c.begin(phaseHandling) {
		return false, nil
	}
	k.seen, k.skipped = 0, 0
	k.r += n
	err := c.request(b[:n])
	if err != nil {
		k.r -= n // refuse looks at it
	}
	return true, err
}

// heading notes that a head has begun to come.
func (c *conn) heading() {
	c.began.Store(c.e.clock.now())
	c.begin(phaseHeading)
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
			x := new(routedFielded)
			k.use(&x.exchange, &x.request, &x.content, x.values[:0])
		}
		if k.inward == nil {
			k.inward = make(http.Header, 16)
		}
		clear(k.inward)
		k.pin = k.r
		text = sys.String(head)
	} else {
		fields := max(0, bytes.Count(head, lineEnd)-3)
		if most := c.e.limits.fields; most > 0 {
			fields = min(fields, most) // a head with more is refused
		}
		k.renew(c.e, head, fields)
		k.inward = make(http.Header, fields)
		text = string(head)
	}
	x := k.x
	if err := k.head.Parse(text, k.inward, k.values, &c.e.options); err != nil {
		return err
	}
	if c.e.s.Reuse {
		x.ctx.renew()
		*x.req = http.Request{}
	}
	x.ctx.Context, x.ctx.c = c.ctx, c
	c.e.contexts.Set(x.req, &x.ctx)
	if k.roomy != nil {
		c.e.fields.Reserve(k.roomy)
	}
	return c.fillIn(x)
}

// lineEnd ends a line. Counting them says how large a map the fields need, which
// are all but the request line, Host and the empty line: one that grows past
// eight is made twice (BenchmarkServer/request=browser).
var lineEnd = []byte{'\n'}

// fillIn sets the request's fields as net/http does.
func (c *conn) fillIn(x *exchange) error {
	h, r := &c.k.head, x.req
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
		if x.body == nil {
			x.body = new(body)
		}
		x.body.open(c, x)
		r.Body = x.body
	}
	if h.Length < 0 {
		r.TransferEncoding = []string{"chunked"}
		if h.HasTrailer {
			if err := announceTrailers(r); err != nil {
				return err
			}
		}
	}
	c.k.facts = facts{}
	x.res = response{
		c: c, x: x, declared: -1, told: c.k.told,
		isHead: h.Method == http.MethodHead, hasBody: h.Length != 0, is11: h.Minor == 1 || h.Preface,
		wants10: h.Minor == 0 && h.KeepAlive && !h.Close, wantsClose: r.Close,
	}
	return nil
}

// open readies the body for the request at hand.
func (b *body) open(c *conn, x *exchange) {
	h := &c.k.head
	c.unread.Store(true)
	c.in.Forget() // what came of the bodies before says nothing about this one
	b.c, b.w = c, &x.res
	b.left, b.chunked = h.Length, h.Length < 0
	b.chunks, b.rest, b.err, b.closed = http1.Chunks{}, nil, nil, false
	b.returned.Store(false)
	if k, all := c.k, int64(c.k.r)+h.Length; k.w == len(k.buf) && all > int64(k.w) && all <= 4*bufSize {
		c.room = int32(all) // the next comes by one read
	}
	b.promised = h.Expect == http1.Continue && h.Minor == 1
	b.expecting = b.promised
}

// announceTrailers moves the names of trailers to come to Request.Trailer. As
// net/http it refuses those that frame the message.
func announceTrailers(r *http.Request) error {
	for _, list := range r.Header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			switch name {
			case "":
				continue
			case "Transfer-Encoding", "Trailer", "Content-Length":
				return errTrailerName
			}
			if r.Trailer == nil {
				r.Trailer = http.Header{}
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
	switch {
	case len(c.k.out) == 0:
	case w.hasBody && !x.body.wholeLocked():
		c.flush() // a client may send the body only once it has the answers before
	default:
		c.k.before = len(c.k.out)
		c.holdBack()
	}
	if c.k.head.Expect == http1.OtherExpect {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusExpectationFailed)
	} else {
		c.dispatch(w, x.req)
	}
	alone := x.retire()
	if c.left {
		c.letGo(x)
		return goLeft
	}
	if w.hasBody {
		x.body.endRead(c)
	}
	if !alone {
		x.abandon(c)
		return goTorn
	}
	c.learn(x)
	w.finish()
	x.ctx.end(context.Canceled)
	c.cur.Store(nil)
	c.unpeek()
	return c.settle(x)
}

// learn looks at what a chain made of a request, so that the next has room for it.
func (c *conn) learn(x *exchange) {
	s := x.ctx.slot.Load()
	if s != nil && !c.e.chained.Load() {
		c.e.chained.Store(true)
	}
	if s != nil && s.Crowded() && !c.e.crowded.Load() {
		c.e.crowded.Store(true)
	}
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
	c.k.pin = 0
	if c.readBy.Swap(0) != 0 || c.nudged.Load() {
		c.readUntil(noDeadline)
		c.hasten(c.e.clock.now())
	}
	if c.writeBy.Load() != 0 || c.late.Load() != 0 {
		c.writeBy.Store(0)
		c.writeUntil(noDeadline)
		c.hasten(c.e.clock.now())
	}
	switch {
	case c.torn != nil || w.short():
		return goEnd
	case read == nil || malformed(read) || read != io.EOF && isTimeout(read):
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
