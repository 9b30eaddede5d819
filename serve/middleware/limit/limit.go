// Package limit bounds what a request may bring and how many are served at a time.
//
// Requests whose body is too long get 413, before it is read where its length is known.
// Those with too many header fields get 431. Beyond so many requests in flight the next
// ones wait in a queue, first come first served, and get 503 with Retry-After when that
// is full or the wait is over. A client that goes away leaves the queue.
//
// Place: outside of what costs and behind accesslog. Streams and WebSockets count as in
// flight as long as they last: give them a chain of their own.
//
// Cost: an atomic addition at either end of the request. Only bodies of unknown length and
// requests that wait allocate.
package limit

import (
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/chain"
)

// Options of the limits. In each field 0 is the default and a negative number is no
// limit.
type Options struct {
	Body   int64 // bytes; 0: 1 MiB
	Fields int   // of the header; 0: 100
	// InFlight is how many requests are served at a time; 0: 256 a processor that Go uses.
	InFlight int
	// Queue is how many wait; 0: as many as InFlight. Negative: none.
	Queue int
	// Wait is how long one waits at most; 0: a second. Negative: as long as its client.
	Wait time.Duration
}

// Limit is the middleware with its counts. It is safe for concurrent use. Chains that it
// is part of share the requests in flight.
type Limit struct {
	o       Options
	slots   slots
	_       [64]byte // what each request writes is on no cache line with what others read
	refused atomic.Uint64
}

// Defaults of Options.
const (
	defaultBody     = 1 << 20
	defaultFields   = 100
	defaultInFlight = 256 // a processor
	defaultWait     = time.Second
)

// mostInFlight keeps a slip in a number from taking all memory.
const mostInFlight = 1 << 24

// New returns the limits, or an error that says which option is wrong.
func New(o Options) (*Limit, error) {
	if o.InFlight > mostInFlight || o.Queue > mostInFlight {
		return nil, fmt.Errorf("limit: Options.InFlight or Queue is more than %d", mostInFlight)
	}
	if o.Body == 0 {
		o.Body = defaultBody
	}
	if o.Fields == 0 {
		o.Fields = defaultFields
	}
	if o.InFlight == 0 {
		o.InFlight = defaultInFlight * runtime.GOMAXPROCS(0)
	}
	if o.Queue == 0 {
		o.Queue = o.InFlight
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	l := &Limit{o: o}
	if o.InFlight > 0 {
		l.slots.init(int64(o.InFlight), int64(max(o.Queue, 0)))
	}
	return l, nil
}

// Middleware limits what reaches next. In a chain its layer is called limit.
func (l *Limit) Middleware(next http.Handler) http.Handler { return &handler{l, next} }

// InFlight returns how many requests are being served.
func (l *Limit) InFlight() int { return int(min(l.slots.taken.Load(), l.slots.most)) }

// Waiting returns how many requests are in the queue.
func (l *Limit) Waiting() int { return int(max(l.slots.taken.Load()-l.slots.most, 0)) }

// Refused returns how many requests were refused, for whatever reason.
func (l *Limit) Refused() uint64 { return l.refused.Load() }

type handler struct {
	l    *Limit
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "limit", Rules: []chain.Rule{
		chain.Before("timeout", "the wait in the queue would use up the handler's time"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := h.l
	if status := l.check(r); status != 0 {
		l.refuse(w, r, status)
		return
	}
	if r.ContentLength < 0 && l.o.Body >= 0 {
		r.Body = http.MaxBytesReader(w, r.Body, l.o.Body)
	}
	if l.slots.most == 0 {
		h.next.ServeHTTP(w, r)
		return
	}
	if !l.slots.take(r.Context(), l.o.Wait) {
		w.Header().Set("Retry-After", "1")
		l.refuse(w, r, http.StatusServiceUnavailable)
		return
	}
	defer l.slots.give() // also if the handler panics
	h.next.ServeHTTP(w, r)
}

// check returns the status by which a request is refused for what it brings, or 0.
func (l *Limit) check(r *http.Request) int {
	if l.o.Body >= 0 && r.ContentLength > l.o.Body {
		return http.StatusRequestEntityTooLarge
	}
	if l.o.Fields >= 0 {
		n := 0
		for _, lines := range r.Header {
			n += len(lines)
		}
		if n > l.o.Fields {
			return http.StatusRequestHeaderFieldsTooLarge
		}
	}
	return 0
}

func (l *Limit) refuse(w http.ResponseWriter, r *http.Request, status int) {
	l.refused.Add(1)
	if status == http.StatusRequestEntityTooLarge && r.ProtoMajor == 1 { // by HTTP/2 others share the connection
		w.Header().Set("Connection", "close") // its body is not worth reading
	}
	http.Error(w, http.StatusText(status), status)
}
