// Package shadow sends copies of requests to another handler and drops its answers,
// to try a new version of a service with what real clients ask.
//
// A copy is sent once its request's body has been read to the end by the handler that
// answers, or at once if it has none. It changes nothing for the client: no answer waits
// for it, its own answer is thrown away, and there is a bound on how many are under way.
// What is over a bound is not copied, and counted.
//
// A copy has the field X-Shadow, by which a service can leave out what must not be done
// twice: mail, payments, orders. A service that does not look at it does them twice.
//
// Place in a chain: directly before the proxy, behind what refuses requests.
package shadow

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

// Options of copies. The zero value needs a handler.
type Options struct {
	// To gets the copies, and is most often a proxy to other upstreams. It must be set.
	To http.Handler
	// Share of the requests that are copied. 0: all.
	Share float64
	// Body is the longest body that is copied, in bytes. 0: 64 KiB; negative: none is.
	Body int64
	// AtOnce is how many copies are under way at most. 0: 64.
	AtOnce int
	// Timeout is how long one may take. 0: 10 s.
	Timeout time.Duration
}

const (
	defaultBody    = 64 << 10
	defaultAtOnce  = 64
	defaultTimeout = 10 * time.Second
)

// field tells a copy from a request.
const field = "X-Shadow"

// Shadow sends copies. It is safe for concurrent use.
type Shadow struct {
	o             Options
	slots         chan struct{}
	sent, dropped atomic.Uint64
}

// New returns a shadow, or an error that says which option is wrong.
func New(o Options) (*Shadow, error) {
	switch {
	case o.To == nil:
		return nil, fmt.Errorf("shadow: Options.To is not set: where do copies go?")
	case !(o.Share >= 0 && o.Share <= 1):
		return nil, fmt.Errorf("shadow: Options.Share is %v; set a share up to 1, or 0 for all", o.Share)
	case o.AtOnce < 0 || o.Timeout < 0:
		return nil, fmt.Errorf("shadow: Options has a negative number: AtOnce %d, Timeout %s", o.AtOnce, o.Timeout)
	}
	if o.Share == 0 {
		o.Share = 1
	}
	if o.Body == 0 {
		o.Body = defaultBody
	}
	if o.AtOnce == 0 {
		o.AtOnce = defaultAtOnce
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Shadow{o: o, slots: make(chan struct{}, o.AtOnce)}, nil
}

// Middleware has next answer requests, and copies them.
func (s *Shadow) Middleware(next http.Handler) http.Handler { return &handler{s, next} }

// Sent returns how many copies were sent.
func (s *Shadow) Sent() uint64 { return s.sent.Load() }

// Dropped returns how many were not, though they were to be: there were too many at once,
// or the body was too long or not read to its end.
func (s *Shadow) Dropped() uint64 { return s.dropped.Load() }

type handler struct {
	s    *Shadow
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.s
	if r.Method == http.MethodConnect || r.Header["Upgrade"] != nil || r.Header[field] != nil || s.o.Share < 1 && rand.Float64() >= s.o.Share {
		h.next.ServeHTTP(w, r)
		return
	}
	copied := r.Clone(context.Background())
	if r.ContentLength == 0 || r.Body == nil {
		copied.Body = http.NoBody
		s.send(copied)
		h.next.ServeHTTP(w, r)
		return
	}
	kept := &tee{ReadCloser: r.Body, most: s.o.Body, length: r.ContentLength, long: r.ContentLength > s.o.Body}
	r.Body = kept
	defer func() { // also where the answer broke off
		if !kept.whole.Load() {
			s.dropped.Add(1)
			return
		}
		copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(kept.body)), int64(len(kept.body))
		copied.TransferEncoding, copied.Trailer = nil, nil
		s.send(copied)
	}()
	h.next.ServeHTTP(w, r)
}

// send sends a copy, if there is room for it.
func (s *Shadow) send(r *http.Request) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.dropped.Add(1)
		return
	}
	s.sent.Add(1)
	r.Header[field] = []string{"1"}
	delete(r.Header, "Expect")
	go func() {
		defer func() {
			_ = recover() // a proxy panics where an answer broke off; nobody sees this one
			<-s.slots
		}()
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Timeout)
		defer cancel()
		s.o.To.ServeHTTP(&discard{http.Header{}}, r.WithContext(ctx))
	}()
}

// tee keeps what is read of a body.
type tee struct {
	io.ReadCloser
	most   int64
	length int64 // -1: nobody knows
	body   []byte
	long   bool
	whole  atomic.Bool // body is all of it, and nobody adds to it
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	switch {
	case t.long || t.whole.Load():
	case int64(len(t.body)+n) > t.most:
		t.body, t.long = nil, true
	default:
		t.body = append(t.body, p[:n]...)
		if err == io.EOF || int64(len(t.body)) == t.length { // who knows the length does not wait for the end
			t.whole.Store(true)
		}
	}
	return n, err
}

// discard is a writer of answers that nobody sees.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}
