package serve

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/after"
)

// requestContext is the context of one request. It costs nothing until somebody
// asks for Done or Err: only then is the connection watched for its peer's going.
type requestContext struct {
	context.Context // the connection's
	c               *conn

	mu    sync.Mutex
	done  chan struct{}
	err   error
	after after.List
	drop  func() bool // no longer follow the parent

	slot chain.Slot
}

// ChainSlot returns the place where a chain keeps its state of the request
// (serve/chain), so that it needs no context of its own.
func (r *requestContext) ChainSlot() *chain.Slot { return &r.slot }

// WantPathRoom has the server's next requests bring room for path values along: a
// router asks for it that found none (serve/router).
func (r *requestContext) WantPathRoom() {
	if routed := &r.c.e.routed; !routed.Load() {
		routed.Store(true)
	}
}

func (r *requestContext) Value(key any) any {
	if key == http.LocalAddrContextKey {
		return r.c.nc.LocalAddr()
	}
	if s := r.slot.Load(); s != nil {
		if v := s.Value(key); v != nil {
			return v
		}
	}
	return r.Context.Value(key)
}

func (r *requestContext) Deadline() (time.Time, bool) {
	at, ok := r.Context.Deadline()
	if until := r.c.term.EndOf(r); !until.IsZero() && (!ok || until.Before(at)) {
		return until, true
	}
	return at, ok
}

// EndAt has the context end at that time, and for zero not any more, if it has not
// ended. It costs a timer only once somebody waits (serve/middleware/timeout).
func (r *requestContext) EndAt(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		until = time.Time{}
	}
	r.c.term.Set(r, until)
	if r.drop != nil {
		r.c.term.Wait(r)
	}
}

// Expire ends the context since its time is over.
func (r *requestContext) Expire() { r.end(context.DeadlineExceeded) }

func (r *requestContext) Err() error {
	r.follow() // who only polls is to learn of it, too
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return r.Context.Err()
	}
	return r.err
}

func (r *requestContext) Done() <-chan struct{} {
	r.mu.Lock()
	if r.done == nil {
		r.done = make(chan struct{})
		if r.err != nil {
			close(r.done)
		}
	}
	done := r.done
	r.mu.Unlock()
	r.follow()
	return done
}

// AfterFunc has contexts that derive from r follow it without a goroutine each
// (the interface that package context looks for).
func (r *requestContext) AfterFunc(f func()) (stop func() bool) {
	r.mu.Lock()
	if r.err != nil {
		r.mu.Unlock()
		go f()
		return func() bool { return false }
	}
	entry := r.after.Add(f)
	r.mu.Unlock()
	r.follow()
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return entry.Remove()
	}
}

// follow ties r to what may end it before its request does: the parent, and the
// connection.
func (r *requestContext) follow() {
	if r.tie() {
		return
	}
	r.end(context.Canceled)
}

// tie does what follow does, and reports false if the connection's peer has
// gone. It holds the lock all the while, as end does: a request that is over is
// not tied any more, since its connection may be about another.
func (r *requestContext) tie() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drop != nil || r.err != nil {
		return true
	}
	r.drop = func() bool { return true }
	r.c.term.Wait(r)
	if r.Context.Done() != nil {
		r.drop = context.AfterFunc(r.Context, func() { r.end(r.Context.Err()) })
	}
	return r.c.watch(r)
}

// tied reports, of a context that has ended, whether anything ever followed it.
// Then it is not reused: what follows may look at it after the handler has
// returned, though the handler keeps nothing (a timer of a derived context, a
// connection of http.Transport).
func (r *requestContext) tied() bool { return r.drop != nil }

// end ends the context with err, the first time it is called.
func (r *requestContext) end(err error) {
	r.mu.Lock()
	if r.err != nil {
		r.mu.Unlock()
		return
	}
	r.err = err
	if r.done != nil {
		close(r.done)
	}
	after, drop := r.after.Take(), r.drop
	r.mu.Unlock()
	if drop != nil {
		drop()
		r.c.term.Halt(r)
	}
	after.Call()
}

// renew readies the context for a next request, in Reuse mode.
func (r *requestContext) renew() {
	r.done, r.err, r.drop = nil, nil, nil
	if s := r.slot.Load(); s != nil {
		s.Reset()
	}
}
