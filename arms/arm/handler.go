package arm

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tarehq/tare/serve/chain"
)

// handlerLoop prepares requests for the handler. What an engine does around a
// handler is left out: the request is parsed once and copied for every call,
// so that nothing a handler stores in it is seen by the next, and the response
// writer keeps its memory. Only what the handler itself allocates is counted,
// and what renewing the context takes, if it has one of its own.
func handlerLoop(h http.Handler, newContext func() (context.Context, func())) func(LoopRequest) func() Answer {
	return func(q LoopRequest) func() Answer {
		proto, err := request(q)
		if err != nil {
			panic(err) // the loop reports it with the request
		}
		c := &call{handler: h, proto: *proto, payload: []byte(q.Body)}
		c.w = writer{ctx: context.Background(), header: http.Header{}}
		if q.Body != "" {
			c.proto.Body = io.NopCloser(&c.body)
			c.proto.ContentLength = int64(len(q.Body))
		}
		if newContext != nil {
			ctx, renew := newContext()
			c.proto, c.renew, c.w.ctx = *c.proto.WithContext(ctx), renew, ctx
		}
		return c.do
	}
}

// request builds the request as a server would have parsed it.
func request(q LoopRequest) (*http.Request, error) {
	u, err := url.ParseRequestURI(q.Target)
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: q.Method, URL: u, RequestURI: q.Target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody,
		Host: "127.0.0.1", RemoteAddr: "127.0.0.1:1",
	}
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	for name, value := range q.Header {
		if strings.EqualFold(name, "Host") {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	return r, nil
}

// call is one prepared request. Not safe for concurrent use.
type call struct {
	handler    http.Handler
	proto, req http.Request
	renew      func() // nil: nothing to do to the context
	payload    []byte
	body       bytes.Reader
	w          writer
}

func (c *call) do() Answer {
	if c.renew != nil {
		c.renew()
	}
	c.req = c.proto
	c.body.Reset(c.payload)
	c.w.reset()
	c.handler.ServeHTTP(&c.w, &c.req)
	if c.w.status == 0 {
		c.w.status = http.StatusOK
	}
	return Answer{Status: c.w.status, Body: c.w.body}
}

// writer keeps the answer in memory of its own, which it reuses.
type writer struct {
	ctx    context.Context // of the request
	header http.Header
	status int
	body   []byte
}

func (w *writer) reset() {
	clear(w.header)
	w.status, w.body = 0, w.body[:0]
}

// ChainSlot returns what the request's context returns, as the writer of
// serve.Server does; nil if the context has nothing of the kind.
func (w *writer) ChainSlot() *chain.Slot {
	c, ok := w.ctx.(interface{ ChainSlot() *chain.Slot })
	if !ok {
		return nil
	}
	return c.ChainSlot()
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, p...)
	return len(p), nil
}

// WriteString spares handlers the copy that net/http's writer spares them too.
func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, s...)
	return len(s), nil
}

// Flush does nothing: there is nobody to send to.
func (w *writer) Flush() {}
