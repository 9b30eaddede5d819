package breaker

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tarehq/tare/serve/chain"
)

// Middleware keeps requests from next while it fails: answers of 500 and more, and
// panics. In a chain its layer is called breaker.
func (b *Breaker) Middleware(next http.Handler) http.Handler { return &handler{b, next} }

type handler struct {
	b    *Breaker
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "breaker", Rules: []chain.Rule{
		chain.Before("timeout", "requests that time out would not count as failed"),
		chain.After("limit", "its refusals would count as failures of the handler"),
		chain.After("accesslog", "requests that it refuses would not be logged"),
		chain.After("metrics", "requests that it refuses would not be counted"),
		chain.After("cache", "what is in it could not be answered while the handler fails"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, err := h.b.Ask()
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	w, rec := chain.Record(w)
	var body *upload
	if h.b.o.Slow > 0 {
		rec.Clock(time.Now)
		if body = watch(r); body != nil {
			r.Body = body
		}
	}
	failed := true // if the handler panics
	defer func() {
		if first := rec.First(); !first.IsZero() {
			p.begun += time.Since(first)
		}
		p.begun += body.total()
		switch {
		case rec.Status() < 500 && (failed || !rec.Written()) && gone(r.Context()):
			p.Forget()
		default:
			p.Done(failed || rec.Status() >= 500)
		}
	}()
	h.next.ServeHTTP(w, r)
	failed = false
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if h.b.o.Fallback != nil {
		h.b.o.Fallback.ServeHTTP(w, r)
		return
	}
	var open *OpenError
	if errors.As(err, &open) {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(max(open.Retry.Seconds(), 1)), 'f', 0, 64))
	}
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}
