// Package queue answers 202 at once and does a request's work afterwards.
//
// A request is read whole, put into a queue in memory, and answered. So many workers as
// Options.Workers then serve it by the handler, whose answer nobody gets: its status says
// whether the work failed. A full queue answers 503 with Retry-After, before it reads the
// body: the time in which what waits now will have been worked off, 1 to 60 s.
//
// It promises that what was answered with 202 is begun unless the process ends first:
// [Queue.Shutdown] takes no more and waits for the rest. What a crash must not lose
// belongs into a durable queue, such as one on a database (riverqueue.com) or Redis
// (hibiken/asynq).
//
// The work has a context of its own with a deadline, which does not end with the client.
// What the handler needs of the request's context, such as the user, Options.Context
// copies. Memory is bounded by Options.Length times Options.Body, and the headers.
//
// Limits: requests are copied only as far as http.Request.Clone does, so it does not go
// with Server.Reuse of package serve. There is no order among works and no second try.
//
// Place: the innermost of the layers that look at the client. What stands inside of it,
// such as timeout, applies to the work.
//
// Cost: a copy of the request and its body. A worker's goroutine ends when it has nothing
// to do.
package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/safelog"
)

// Options of a queue. The zero value holds 1,024 requests of 64 KiB.
type Options struct {
	Workers int           // how many works are done at a time. 0: 16
	Length  int           // how many wait at most. 0: 1,024
	Body    int64         // the longest body in bytes; a longer one gets 413. 0: 64 KiB
	Timeout time.Duration // of a work. 0: 30 s
	// Context derives a work's context from ctx, which has the values that it takes from
	// the request. Nil: none.
	Context func(ctx context.Context, r *http.Request) context.Context
	// Accepted answers what was queued. Nil: 202 without a body.
	Accepted http.Handler
	// Full answers what the queue does not take; Retry-After is set. Nil: a plain 503.
	Full http.Handler
	// Done is called after each work with the status that the handler answered, 500 if it
	// panicked. If it panics, that is logged. Nil: failures are logged.
	Done func(r *http.Request, status int)
	// Log is for panics and, without Done, failures. A record with which its handler panics is
	// lost. Nil: slog's default.
	Log *slog.Logger
}

const (
	defaultWorkers = 16
	defaultLength  = 1024
	defaultBody    = 64 << 10
	defaultTimeout = 30 * time.Second
	longestRetry   = 60 // seconds
)

// Queue holds work. It is safe for concurrent use, and may be part of many chains, which
// then share its workers.
type Queue struct {
	o       Options
	waiting chan work
	ctx     context.Context // of all works
	cancel  context.CancelFunc

	mu      sync.Mutex // guards what follows
	working int        // goroutines
	closed  bool
	drained chan struct{} // closed when closed and nothing is left

	mean                        atomic.Int64 // ns of a work, a moving mean
	accepted, refused, finished atomic.Uint64
	failed, dropped             atomic.Uint64
}

// work is a request that was answered.
type work struct {
	next http.Handler
	r    *http.Request
}

// New returns an empty queue, or an error that says which option is wrong.
func New(o Options) (*Queue, error) {
	if o.Workers < 0 || o.Length < 0 || o.Length > 1<<24 || o.Body < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("queue: Options has a number that is too small or too large: Workers %d, Length %d, Body %d, Timeout %s", o.Workers, o.Length, o.Body, o.Timeout)
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Length == 0 {
		o.Length = defaultLength
	}
	if o.Body == 0 {
		o.Body = defaultBody
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Context == nil {
		o.Context = func(ctx context.Context, _ *http.Request) context.Context { return ctx }
	}
	if o.Accepted == nil {
		o.Accepted = http.HandlerFunc(accept)
	}
	if o.Full == nil {
		o.Full = http.HandlerFunc(refuse)
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = safelog.New(o.Log)
	q := &Queue{o: o, waiting: make(chan work, o.Length), drained: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	if o.Done == nil {
		q.o.Done = q.logFailure
	}
	return q, nil
}

// Middleware has next do the work of requests. In a chain its layer is called queue.
func (q *Queue) Middleware(next http.Handler) http.Handler { return &handler{q, next} }

// Counts are what a queue has and had.
type Counts struct {
	Waiting, Working int
	Accepted         uint64 // requests that were queued
	Refused          uint64 // for which there was no room
	Finished         uint64 // works that have ended
	Failed           uint64 // of these: with 500 and more, or a panic
	Dropped          uint64 // that Shutdown gave up before they began
}

// Counts returns the queue's state.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counts{len(q.waiting), q.working, q.accepted.Load(), q.refused.Load(), q.finished.Load(), q.failed.Load(), q.dropped.Load()}
}

// Shutdown takes no more requests and waits until the work is done. When ctx ends first,
// it ends the contexts of the works at hand, gives up those that wait, and returns an
// error that says how many there were. Call it after the server's Shutdown.
func (q *Queue) Shutdown(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		q.endLocked()
	}
	q.mu.Unlock()
	select {
	case <-q.drained:
		q.cancel()
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	working, dropped := q.working, 0
	for len(q.waiting) > 0 {
		<-q.waiting
		dropped++
	}
	q.mu.Unlock()
	q.dropped.Add(uint64(dropped))
	q.cancel()
	return fmt.Errorf("queue: shut down with %d works at hand and %d given up: %w", working, dropped, ctx.Err())
}

// endLocked notes that nothing is left.
func (q *Queue) endLocked() {
	if q.closed && q.working == 0 {
		close(q.drained)
	}
}

// put queues a work, unless there is no room.
func (q *Queue) put(w work) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false
	case q.working < q.o.Workers:
		q.working++
		go q.run(w)
		return true
	}
	select {
	case q.waiting <- w:
		return true
	default:
		return false
	}
}

// full reports whether there is no room at the moment.
func (q *Queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed || q.working == q.o.Workers && len(q.waiting) == cap(q.waiting)
}

// run does works until none waits.
func (q *Queue) run(w work) {
	drained := false
	defer func() {
		if drained {
			return
		}
		if next, ok := q.take(); ok { // the handler ended this goroutine
			go q.run(next)
		}
	}()
	for more := true; more; w, more = q.take() {
		q.do(w)
	}
	drained = true
}

// take returns the next work, or ends the worker.
func (q *Queue) take() (w work, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case w = <-q.waiting:
		return w, true
	default:
		q.working--
		q.endLocked()
		return work{}, false
	}
}

// do has the handler do the work.
func (q *Queue) do(w work) {
	ctx, cancel := context.WithTimeout(w.r.Context(), q.o.Timeout)
	defer cancel()
	begun, status := time.Now(), http.StatusInternalServerError
	defer func() { q.note(w.r, status, time.Since(begun)) }() // also if the handler ends its goroutine
	status = q.serve(w.next, w.r.WithContext(ctx))
}

// note counts a work that has ended, and tells of it.
func (q *Queue) note(r *http.Request, status int, took time.Duration) {
	// The mean may lose an update to another worker's: it is an estimate.
	q.mean.Store(q.mean.Load() + (int64(took)-q.mean.Load())/8)
	q.finished.Add(1)
	if status >= 500 {
		q.failed.Add(1)
	}
	defer func() {
		if p := recover(); p != nil {
			q.logPanic(r, "Options.Done", p)
		}
	}()
	q.o.Done(r, status)
}

// logPanic logs what would end the process: nobody else is on a worker's goroutine.
func (q *Queue) logPanic(r *http.Request, of string, p any) {
	if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		q.o.Log.Error(of+" panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	}
}

// serve returns the status that the handler answers, 500 if it panics.
func (q *Queue) serve(next http.Handler, r *http.Request) (status int) {
	w := &discard{header: http.Header{}}
	defer func() {
		if p := recover(); p != nil {
			status = http.StatusInternalServerError
			q.logPanic(r, "queued work", p)
		}
	}()
	next.ServeHTTP(w, r)
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

func (q *Queue) logFailure(r *http.Request, status int) {
	if status >= 500 {
		q.o.Log.Error("queued work failed", "method", r.Method, "path", r.URL.Path, "status", status)
	}
}

// retry returns in how many seconds what waits now will have been worked off.
func (q *Queue) retry() int64 {
	each := time.Duration(q.mean.Load()).Seconds()
	return int64(min(max(math.Ceil(each*float64(len(q.waiting))/float64(q.o.Workers)), 1), longestRetry))
}

type handler struct {
	q    *Queue
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "queue", Rules: []chain.Rule{
		chain.Once("the work would wait twice"),
		chain.After("auth", "work of those whom it refuses would be queued"),
		chain.After("limit", "work that it refuses would be queued first"),
		chain.After("accesslog", "it would log the work's answer, not the client's"),
		chain.After("metrics", "it would count the work's answer, not the client's"),
		chain.After("cache", "it would keep the work's answer, which nobody is given"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := h.q
	if q.full() {
		q.refuse(w, r)
		return
	}
	body, status := q.read(w, r)
	if status != 0 {
		http.Error(w, http.StatusText(status), status)
		return
	}
	copied := r.Clone(q.o.Context(q.ctx, r))
	copied.Body, copied.ContentLength, copied.TransferEncoding = http.NoBody, int64(len(body)), nil
	if len(body) > 0 {
		copied.Body = io.NopCloser(bytes.NewReader(body))
	}
	if !q.put(work{h.next, copied}) {
		q.refuse(w, r)
		return
	}
	q.accepted.Add(1)
	q.o.Accepted.ServeHTTP(w, r)
}

// read returns the body, or the status by which the request is refused.
func (q *Queue) read(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	if r.ContentLength > q.o.Body {
		if r.ProtoMajor == 1 { // by HTTP/2 others share the connection
			w.Header().Set("Connection", "close") // the body is not worth reading
		}
		return nil, http.StatusRequestEntityTooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, q.o.Body))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return body, 0
}

func (q *Queue) refuse(w http.ResponseWriter, r *http.Request) {
	q.refused.Add(1)
	w.Header().Set("Retry-After", strconv.FormatInt(q.retry(), 10))
	q.o.Full.ServeHTTP(w, r)
}

func accept(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// discard is the writer of an answer that nobody gets.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header { return d.header }

func (d *discard) WriteHeader(status int) {
	if d.status == 0 && status >= 200 {
		d.status = status
	}
}

func (d *discard) Write(p []byte) (int, error) {
	d.WriteHeader(http.StatusOK)
	return len(p), nil
}
