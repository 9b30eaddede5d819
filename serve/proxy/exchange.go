package proxy

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/client/transport"
	"github.com/tarehq/tare/serve/internal/repeat"
	"github.com/tarehq/tare/serve/proxy/balance"
	"github.com/tarehq/tare/serve/proxy/internal/carry"
	"github.com/tarehq/tare/serve/proxy/internal/fields"
	"github.com/tarehq/tare/serve/proxy/internal/news"
	"github.com/tarehq/tare/serve/proxy/internal/replay"
	"github.com/tarehq/tare/serve/proxy/internal/trailer"
)

// exchange is one request and what becomes of it. Some are used again, see close.
type exchange struct {
	h *Handler
	w http.ResponseWriter
	r *http.Request

	set      *set
	key      uint64
	tried    balance.Skip
	n        int               // attempts so far
	header   http.Header       // of the request to upstreams
	fields   http.Header       // what the header of an answer is read into, of one attempt at a time, unless direct
	direct   bool              // it is read into the client's, which nobody has written to before
	memory   *transport.Memory // of the first attempt
	upgrade  string
	body     *replay.Body // nil: none
	trailers []string     // that are announced behind it
	again    bool         // the request may be sent twice
	beside   bool         // there were two attempts at a time
	news     news.News
	one      attempt // the first, unless there were two at a time
}

var exchanges = sync.Pool{New: func() any {
	return &exchange{header: http.Header{}, fields: http.Header{}, memory: new(transport.Memory)}
}}

func newExchange(h *Handler, w http.ResponseWriter, r *http.Request) *exchange {
	e := exchanges.Get().(*exchange)
	e.h, e.w, e.r, e.set, e.upgrade = h, w, r, h.o.Pool.set.Load(), h.fields.Upgrade(r)
	e.tried = e.set.drained
	if h.o.Pool.o.Scheme == UnencryptedHTTP2 {
		e.upgrade = "" // HTTP/2 has none
	}
	e.direct = h.hinted && h.o.Hedge == 0 && e.upgrade == "" && len(w.Header()) == 0
	e.key = h.o.Pool.key(r)
	h.fields.Forward(e.header, r, e.upgrade)
	e.again = repeat.Safe(&http.Request{Method: r.Method, Header: e.header}) // a key of one hop does not reach upstreams
	if r.ContentLength != 0 && r.Body != nil {
		most := int64(0)
		if e.again {
			most = max(h.o.Replay, 0)
		}
		e.body, e.trailers = replay.New(r.Body, most), trailer.Announced(r)
	}
	e.news.Begin(w, r)
	return e
}

// close stops what may come of attempts that are over. Our transport lets go of a request
// that has no body once it has answered; only then what was sent may be changed.
func (e *exchange) close() {
	e.news.Stop()
	if !e.h.hinted || e.body != nil || e.beside || e.upgrade != "" || len(e.header)+len(e.fields) > mostKept || !e.memory.Clear() {
		return
	}
	clear(e.header)
	clear(e.fields)
	*e = exchange{header: e.header, fields: e.fields, memory: e.memory}
	exchanges.Put(e)
}

// mostKept is how many fields are cleared to be used again.
const mostKept = 64

// run makes attempts until one is to be passed on.
func (e *exchange) run() {
	c, ok := e.choose()
	if !ok {
		e.giveUp(http.StatusServiceUnavailable)
		return
	}
	a := e.first(c)
	for e.wantsAnother(a) {
		c, ok := e.choose()
		if !ok && e.crossed(a) { // no other server can do it
			e.tried = e.set.drained
			c, ok = e.choose()
		}
		if !ok {
			break
		}
		a.end()
		e.h.counts.retries.Add(1)
		a = e.send(e.r.Context(), c)
	}
	defer e.end(a)
	e.finish(a)
}

// end ends the last attempt.
func (e *exchange) end(a *attempt) {
	a.end()
	if e.h.o.Served != nil {
		e.h.o.Served(e.r, a.member.address, e.n, time.Since(a.begun))
	}
}

func (e *exchange) choose() (choice, bool) {
	return e.set.choose(e.key, &e.tried, e.h.o.Pool.o.Panic)
}

// finish passes an attempt's answer on, or says what became of it.
func (e *exchange) finish(a *attempt) {
	e.news.Stop()
	switch {
	case a.err == nil && e.h.o.Fallback != nil && passing(a.res.StatusCode):
		e.giveUp(a.res.StatusCode)
	case a.err == nil:
		e.answer(a)
	case errors.Is(e.r.Context().Err(), context.DeadlineExceeded): // of a middleware: the client waits yet
		e.giveUp(http.StatusGatewayTimeout)
	case e.r.Context().Err() != nil: // nobody waits for an answer
		panic(http.ErrAbortHandler)
	case e.body != nil && e.body.Broken():
		e.forgetAnswer()
		refuse(e.w, e.body.Status())
	case isBusy(a.err):
		e.giveUpFor(http.StatusServiceUnavailable, "no connection to a server is free")
	case isTimeout(a.err):
		e.giveUp(http.StatusGatewayTimeout)
	default:
		e.giveUp(http.StatusBadGateway)
	}
}

// giveUp answers in an upstream's place.
func (e *exchange) giveUp(status int) { e.giveUpFor(status, "") }

// giveUpFor is giveUp with a reason for the client.
func (e *exchange) giveUpFor(status int, reason string) {
	e.h.counts.failed.Add(1)
	e.forgetAnswer()
	if e.h.o.Fallback != nil {
		e.h.o.Fallback.ServeHTTP(e.w, e.r)
		return
	}
	if reason == "" {
		refuse(e.w, status)
		return
	}
	http.Error(e.w, http.StatusText(status)+": "+reason, status)
}

// forgetAnswer has the client get no fields of an upstream's answer.
func (e *exchange) forgetAnswer() {
	if e.direct {
		clear(e.w.Header())
	}
}

// passing reports whether a status says that another upstream may do better.
func passing(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// wantsAnother reports whether another attempt is needed, safe, and has its budget.
func (e *exchange) wantsAnother(a *attempt) bool {
	switch {
	case a.err == nil && !passing(a.res.StatusCode), !e.mayFollow() && !e.crossed(a), e.r.Context().Err() != nil:
		return false
	case !e.again && !unsent(a.err):
		return false
	case e.body != nil && !e.body.Repeatable():
		return false
	}
	if !e.h.budget.Spend(e.h.o.Budget) {
		e.h.counts.refused.Add(1)
		return false
	}
	return true
}

// mayFollow reports whether there may be an attempt after those that were made.
func (e *exchange) mayFollow() bool {
	return e.n < e.h.o.Attempts && e.set.leaves(&e.tried, e.h.o.Pool.o.Panic)
}

// crossed reports whether the first attempt has met the end of a connection that was kept.
func (e *exchange) crossed(a *attempt) bool {
	_, ended := errors.AsType[*transport.EndedError](a.err)
	return ended && e.n == 1 && e.h.o.Attempts > 1
}

// unsent reports whether no connection could be made, or none was free, so that nothing was
// sent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || isBusy(err)
}

// isBusy reports whether all connections to the upstream were in use.
func isBusy(err error) bool {
	_, is := errors.AsType[*transport.BusyError](err)
	return is
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// attempt is one sending of a request to one upstream.
type attempt struct {
	choice
	ctx    attemptContext
	out    http.Request
	url    url.URL
	res    *http.Response
	err    error
	body   *replay.Attempt
	begun  time.Time   // when it had a connection, where the transport bounds them
	timer  *time.Timer // calls cancel; nil: it has no time, or our transport sees to that
	cancel context.CancelCauseFunc
	over   context.CancelFunc // nil: it has no context of its own
	told   bool               // the pool knows how it went
	slow   bool               // it took longer than the pool's upstreams may
}

// send sends the request to an upstream and waits for the header of its answer.
func (e *exchange) send(ctx context.Context, c choice) *attempt {
	e.n++
	try := time.Duration(0)
	if e.again && e.mayFollow() {
		try = max(e.h.o.TryTimeout, 0)
	}
	a := &e.one
	if e.n > 1 {
		a = new(attempt) // of the one before the answer may be passed on yet
	}
	a.choice = c
	e.sendWithin(ctx, a, try)
	return a
}

var errStatus = errors.New("the status has not three digits")

// sendWithin changes nothing of the exchange, so that two may be under way.
func (e *exchange) sendWithin(ctx context.Context, a *attempt, try time.Duration) {
	if e.h.hinted {
		a.ctx = attemptContext{ctx, &e.news, try, &a.begun, nil, nil, e.direct}
		switch {
		case e.direct:
			a.ctx.fields = e.w.Header()
		case !e.beside:
			a.ctx.fields = e.fields
		}
		if a == &e.one {
			a.ctx.memory = e.memory
		}
		a.roundTrip(&a.ctx, e)
	} else {
		a.roundTripWithin(ctx, e, try)
	}
	if a.err == nil && (a.res.StatusCode < 100 || a.res.StatusCode > 999) { // by HTTP/2
		a.close()
		a.res, a.err = nil, errStatus
	}
	switch {
	case a.err == nil:
		a.member.answers[min(max(a.res.StatusCode/100, 1), 5)-1].Add(1)
		if a.slow || a.res.StatusCode >= http.StatusInternalServerError {
			a.tell(true)
		}
	case isBusy(a.err): // as many requests as it is to get have not ended
		e.h.counts.busy.Add(1)
		a.forget()
	case !a.slow && ctx.Err() != nil, e.body != nil && e.body.Broken(): // not the upstream's fault
		a.forget()
	default:
		a.tell(true)
	}
}

// attemptContext tells our transport what no other could be told at so little cost.
type attemptContext struct {
	context.Context
	news   *news.News
	try    time.Duration     // 0: as long as the transport has
	begun  *time.Time        // the attempt's
	fields http.Header       // nil: the transport's own
	memory *transport.Memory // likewise
	direct bool              // fields are the client's
}

func (c *attemptContext) HeaderTimeout() time.Duration { return c.try }

func (c *attemptContext) Header() http.Header {
	clear(c.fields)
	return c.fields
}

func (c *attemptContext) Memory() *transport.Memory { return c.memory }

func (c *attemptContext) Inform(status int, header http.Header) error {
	if c.direct {
		header = maps.Clone(header)
		clear(c.fields) // of which it is one
	}
	return c.news.Pass(status, textproto.MIMEHeader(header))
}

// HaveTurn is called once the attempt has a connection: what it has waited for that before is
// not the upstream's doing.
func (c *attemptContext) HaveTurn() { *c.begun = time.Now() }

// Unwrap returns the request's context, which is not used again.
func (c *attemptContext) Unwrap() context.Context { return c.Context }

func (c *attemptContext) AfterFunc(f func()) (stop func() bool) {
	if inner, ok := c.Context.(interface{ AfterFunc(func()) func() bool }); ok {
		return inner.AfterFunc(f)
	}
	return context.AfterFunc(c.Context, f)
}

// turnContext is told when an attempt has a connection.
type turnContext struct {
	context.Context
	a   *attempt
	try time.Duration
}

func (c *turnContext) HaveTurn() { c.a.begin(c.try) }

// begin has the attempt's time, if it has one, run from now on.
func (a *attempt) begin(try time.Duration) {
	a.begun = time.Now()
	if try > 0 {
		a.timer = time.AfterFunc(try, func() { a.cancel(os.ErrDeadlineExceeded) })
	}
}

// roundTripWithin is roundTrip for transports that take no hints. Where the transport bounds
// connections, the time runs once the attempt has one.
func (a *attempt) roundTripWithin(ctx context.Context, e *exchange, try time.Duration) {
	ctx, a.cancel = e.news.Trace(ctx)
	if e.h.queues {
		ctx = &turnContext{ctx, a, try}
	} else {
		a.begin(try)
	}
	a.roundTrip(ctx, e)
	if a.timer != nil && !a.timer.Stop() && context.Cause(ctx) == os.ErrDeadlineExceeded {
		a.close()
		a.res, a.err = nil, os.ErrDeadlineExceeded
	}
}

func (a *attempt) roundTrip(ctx context.Context, e *exchange) {
	out := e.request(ctx, a)
	if e.body != nil {
		a.body = e.body.Attempt()
		out.Body = a.body
		if len(e.trailers) > 0 {
			body := trailer.NewBody(a.body, e.r, e.trailers)
			out.Body, out.Trailer = body, body.To
		}
	}
	a.member.asked.Add(1)
	a.member.target.Begin()
	if !e.h.o.Pool.timed && e.h.o.Served == nil {
		a.res, a.err = e.h.o.Transport.RoundTrip(out)
		return
	}
	if a.begun.IsZero() {
		a.begun = time.Now()
	}
	a.res, a.err = e.h.o.Transport.RoundTrip(out)
	now := time.Now()
	took := now.Sub(a.begun)
	if a.err == nil {
		a.member.target.Observe(took, now)
	}
	if most := e.h.o.Pool.o.Eject.Slow; most > 0 && e.body == nil {
		a.slow = took > most
	}
}

// request is what an upstream is sent. Nothing of it is changed once it is, as transports
// may read it for a while after they returned.
func (e *exchange) request(ctx context.Context, a *attempt) *http.Request {
	out := &a.out
	*out = *e.r.WithContext(ctx) // which is on the stack
	a.url = *e.r.URL
	a.url.Scheme, a.url.Host, a.url.User = urlScheme(e.h.o.Pool.o.Scheme), a.member.address, nil
	out.URL, out.Header = &a.url, e.header
	out.Host = cmp.Or(e.h.o.Host, e.r.Host)
	out.RequestURI, out.TransferEncoding, out.Close, out.Body, out.GetBody, out.Trailer = "", nil, false, nil, nil, nil
	if e.body == nil {
		out.ContentLength = 0
	}
	return out
}

// close ends the attempt's traffic: the upstream sees its client go, unless its answer was
// read to the end.
func (a *attempt) close() {
	if a.body != nil {
		_ = a.body.Close() // has no error
	}
	if a.res != nil {
		_ = a.res.Body.Close() // nobody is left to tell
	}
	if a.cancel != nil {
		a.cancel(nil)
	}
	if a.over != nil {
		a.over()
	}
}

// end ends the attempt.
func (a *attempt) end() {
	a.close()
	a.tell(false)
	a.member.target.End()
}

// tell says how the attempt went, once.
func (a *attempt) tell(failed bool) {
	if !a.told && a.counted {
		a.pass.Done(failed)
	}
	a.told = true
}

// forget has the attempt say nothing about its upstream.
func (a *attempt) forget() {
	if !a.told && a.counted {
		a.pass.Forget()
	}
	a.told = true
}

// answer passes the upstream's answer on.
func (e *exchange) answer(a *attempt) {
	res := a.res
	if res.StatusCode == http.StatusSwitchingProtocols {
		e.tunnel(a)
		return
	}
	to, named := e.w.Header(), fields.Nominated(res.Header["Connection"])
	if e.direct {
		fields.Strip(to)
	} else {
		fields.CopyAnswer(to, res.Header)
	}
	if res.StatusCode == http.StatusNoContent {
		delete(to, "Content-Length") // it may not have one
	}
	promised := 0
	for name := range res.Trailer {
		if trailer.Passes(name, named) {
			to.Add("Trailer", name)
			promised++
		}
		delete(to, "Content-Length") // of HTTP/2: in HTTP/1.1 only chunks have trailers
	}
	streams := isStream(res.Header.Get("Content-Type")) && res.ContentLength != 0 // gRPC's errors have no body, and end at once
	var flush func() error
	if res.ContentLength < 0 || streams {
		flush = e.flusher()
	} else if e.body != nil && !e.body.Ended() { // the client may wait for this before it goes on
		_ = http.NewResponseController(e.w).EnableFullDuplex() // HTTP/2 has it anyway
	}
	e.w.WriteHeader(res.StatusCode)
	if streams {
		a.tell(false)
		_ = flush() // who waits is to learn that something may come; the copy tells if that fails
	}
	if err := e.pump(a, flush); err != nil {
		panic(http.ErrAbortHandler) // the client sees that it is not whole
	}
	trailer.Pass(e.w, res, promised, named)
}

// isStream reports whether an answer of this media type goes on for as long as it likes,
// so that its header is worth something alone.
func isStream(kind string) bool {
	return strings.HasPrefix(kind, "text/event-stream") || strings.HasPrefix(kind, "application/grpc")
}

// flusher has an answer be sent as it comes, also while the request's body does.
func (e *exchange) flusher() func() error {
	rc := http.NewResponseController(e.w)
	if e.body != nil {
		_ = rc.EnableFullDuplex() // HTTP/2 has it anyway
	}
	return func() error {
		if err := rc.Flush(); !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		return nil
	}
}

// pump copies the answer's body and says whether it has come to its end.
func (e *exchange) pump(a *attempt, flush func() error) error {
	if a.res.Body == http.NoBody || e.r.Method == http.MethodHead {
		return nil
	}
	upstream, client := carry.Body(e.w, a.res.Body, flush, e.h.o.Pause)
	switch {
	case client != nil, upstream != nil && e.r.Context().Err() != nil:
		a.forget()
	case upstream != nil:
		a.tell(true)
	}
	return cmp.Or(upstream, client)
}
