package breaker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
)

// mostHosts bounds a transport's memory.
const mostHosts = 1024

// Transport has a breaker for each of the first 1,024 hosts that requests go to; requests
// to others pass. Answers of 500 and more and errors are failures. It is safe for
// concurrent use.
type Transport struct {
	next  http.RoundTripper
	o     Options
	hosts sync.Map // host and port as the URL says → *Breaker
	n     atomic.Int64
}

// NewTransport returns a transport that sends requests by next, or an error that says
// which option is wrong.
func NewTransport(o Options, next http.RoundTripper) (*Transport, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if next == nil {
		return nil, errors.New("breaker: there is no transport to guard")
	}
	return &Transport{next: next, o: o}, nil
}

// Host returns the breaker of a host, as in http.Request.URL.Host, or nil if there are
// too many hosts.
func (t *Transport) Host(host string) *Breaker {
	if b, ok := t.hosts.Load(host); ok {
		return b.(*Breaker)
	}
	if t.n.Load() >= mostHosts {
		return nil
	}
	b, loaded := t.hosts.LoadOrStore(host, newBreaker(host, t.o, nil))
	if !loaded {
		t.n.Add(1)
	}
	return b.(*Breaker)
}

// CloseIdleConnections closes those of the transport below, as http.Client asks for.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends the request, unless the breaker of its host is open.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil { // the transport below says what is wrong
		return t.next.RoundTrip(r)
	}
	b := t.Host(r.URL.Host)
	if b == nil {
		return t.next.RoundTrip(r)
	}
	p, err := b.Ask()
	if err != nil {
		if t.o.Fallback != nil {
			return fallBack(t.o.Fallback, r), nil
		}
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	ended := false
	defer func() {
		if !ended { // the transport panics
			p.Done(true)
		}
	}()
	var body *upload
	if t.o.Slow > 0 {
		if body = watch(r); body != nil {
			r = r.WithContext(r.Context()) // a copy
			r.Body = body
		}
	}
	res, err := t.next.RoundTrip(r)
	ended = true
	p.begun += body.total()
	switch {
	case err != nil && gone(r.Context()):
		p.Forget()
	default:
		p.Done(err != nil || res.StatusCode >= 500)
	}
	return res, err
}

// gone reports whether the context ended for another reason than its time.
func gone(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && !errors.Is(cause, context.DeadlineExceeded)
}

// fallBack has the handler answer in memory.
func fallBack(h http.Handler, r *http.Request) *http.Response {
	w := &answer{header: http.Header{}}
	if r.Body != nil {
		defer r.Body.Close() // also if the handler panics
	}
	h.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status:     strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode: w.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        w.sent,
		Body:          io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
		Request:       r,
	}
}

// answer is what a handler says.
type answer struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status, a.sent = status, a.header.Clone()
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
