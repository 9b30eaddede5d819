// Package timeout gives each request a deadline.
//
// The deadline is in the request's context. A handler passes that on to what it calls
// (database, other services) and returns when it is done; if it has written nothing by
// then, the client gets 503. The handler runs on its own goroutine and is not left to
// itself: one that ignores its context answers late. Where a library in use ignores it,
// http.TimeoutHandler answers in time, for a goroutine and a copy of the answer.
//
// Streams are exempt as they come: requests for an upgrade or for text/event-stream. A client can
// ask any route for either, and then has no deadline there. Where that matters set Options.Exempt
// to what tells the routes of streams.
//
// Place: inside of limit, whose queue is not the handler's time, and of accesslog.
//
// Cost: no timer and no goroutine until somebody waits for the context. On package serve
// it allocates nothing; elsewhere a context and a copy of the request.
package timeout

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/unsent"
)

// Options of the time-out. The zero value is 30 s for all but streams.
type Options struct {
	After time.Duration // 0: 30 s
	// Exempt says which requests have no deadline. Nil: those that ask for an upgrade
	// or for text/event-stream.
	Exempt func(*http.Request) bool
	// Answer answers a request that timed out before anything was written. Fields that
	// described the answer that did not come, such as Cache-Control, are gone. Nil: a plain 503.
	Answer http.Handler
}

const (
	defaultAfter = 30 * time.Second
	longest      = 100 * 365 * 24 * time.Hour // a time can be added to it
)

// New returns the middleware, or an error if Options.After is negative.
func New(o Options) (func(http.Handler) http.Handler, error) {
	if o.After < 0 {
		return nil, errors.New("timeout: Options.After is negative; for no time-out leave the middleware out")
	}
	if o.After == 0 {
		o.After = defaultAfter
	}
	o.After = min(o.After, longest)
	if o.Exempt == nil {
		o.Exempt = streams
	}
	if o.Answer == nil {
		o.Answer = http.HandlerFunc(answer)
	}
	return func(next http.Handler) http.Handler { return &handler{o, next} }, nil
}

type handler struct {
	o    Options
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "timeout", Rules: []chain.Rule{
		chain.Once("the shorter one counts, wherever it stands"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.o.Exempt(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	w, rec := chain.Record(w)
	begun := rec.Begun()
	at := begun.Add(time.Since(begun) + h.o.After) // of two clocks that time.Now reads this reads one
	if ctx, ok := r.Context().(ender); ok {
		h.serve(w, r, ctx, at)
	} else {
		h.serveCopied(w, r, at)
	}
	if !rec.Written() {
		h.end(w, r, at)
	}
}

// end answers a request that timed out, of which nothing was written.
func (h *handler) end(w http.ResponseWriter, r *http.Request, at time.Time) {
	if !time.Now().Before(at) && !errors.Is(r.Context().Err(), context.Canceled) {
		unsent.Forget(w.Header())
		h.o.Answer.ServeHTTP(w, r)
	}
}

// serve has next answer by that time, on package serve.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, ctx ender, at time.Time) {
	before, _ := ctx.Deadline()
	if before.IsZero() || at.Before(before) {
		ctx.EndAt(at)
		defer ctx.EndAt(before)
	}
	h.next.ServeHTTP(w, r)
}

// serveCopied does so elsewhere, by a copy of the request.
func (h *handler) serveCopied(w http.ResponseWriter, r *http.Request, at time.Time) {
	ctx := &deadline{Context: r.Context(), at: at}
	copied := r.WithContext(ctx.slotted())
	defer func() {
		ctx.end()
		r.Pattern = copied.Pattern // layers outside count and log by it
	}()
	h.next.ServeHTTP(w, copied)
}

// ender is the context of a request on package serve.
type ender interface {
	context.Context
	EndAt(time.Time)
}

func streams(r *http.Request) bool {
	if r.Header["Upgrade"] != nil {
		return true
	}
	for _, accept := range r.Header["Accept"] {
		if strings.Contains(accept, "text/event-stream") {
			return true
		}
	}
	return false
}

func answer(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// deadline is a context that makes a timer only when somebody asks for its end.
type deadline struct {
	context.Context // the request's
	at              time.Time

	mu     sync.Mutex
	timed  context.Context // nil: nobody has asked
	cancel context.CancelFunc
	over   bool // the handler has returned
}

// slotted returns d with the place for a chain's state that the request's context has,
// if it has one.
func (d *deadline) slotted() context.Context {
	if s, ok := d.Context.(slotter); ok {
		return &slotDeadline{d, s}
	}
	return d
}

type slotter interface{ ChainSlot() *chain.Slot }

type slotDeadline struct {
	*deadline
	slotter
}

func (d *deadline) Deadline() (time.Time, bool) {
	if at, ok := d.Context.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

func (d *deadline) Done() <-chan struct{} { return d.inner().Done() }

func (d *deadline) Err() error { return d.inner().Err() }

// AfterFunc has contexts that derive from d follow it without a goroutine each (the
// interface that package context looks for).
func (d *deadline) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(d.inner(), f) }

// inner returns the context with the timer.
func (d *deadline) inner() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
		if d.over {
			d.cancel()
		}
	}
	return d.timed
}

// end ends the context with its handler.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.cancel != nil {
		d.cancel()
	}
}
