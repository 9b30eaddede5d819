package load

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/tarehq/tare/load/internal/dial"
	"github.com/tarehq/tare/load/internal/fifo"
	"github.com/tarehq/tare/load/internal/sys"
)

// maxBackoff is the longest that a closed-loop worker waits after a refused
// connection. Without it a dead target is hammered as fast as refusals come.
const maxBackoff = 100 * time.Millisecond

// maxSleep is how long the dispatcher may take to see that the run has ended.
const maxSleep = 20 * time.Millisecond

// netEngine drives requests with a goroutine a worker over package net: a
// worker is a connection in HTTP/1.1, a stream in HTTP/2.
type netEngine struct {
	plan      *plan
	script    *script
	dialer    *dial.Dialer
	workers   int // at most
	shards    []*recorder
	exchanger func(k int, rec *recorder) exchanger // makes worker k's
	abandoned context.Context                      // ends when the plan gives up what is in flight

	mu      sync.Mutex
	made    []exchanger // to be closed at the end
	idle    []*worker   // last in, first out: few connections stay warm
	backlog fifo.Queue  // intended starts that wait for a worker
	started int
	closing bool // no more requests will be put
	wg      sync.WaitGroup
}

// exchanger sends one request at a time and reads its answer.
type exchanger interface {
	// exchange fills in o, but for its intended start, start and end. An error
	// tells that no whole answer came, and the failure which kind that is.
	exchange(o *outcome) (failure, error)
	// close closes the connections.
	close()
}

// worker carries out requests one after the other.
type worker struct {
	exchanger
	rec  *recorder
	jobs chan int64 // open loop: intended starts
	o    outcome
}

// newNetEngine is an engine without its exchangers.
func newNetEngine(p *plan) *netEngine {
	e := &netEngine{plan: p, script: p.script, dialer: newDialer(p), workers: p.opts.Connections}
	shards := min(runtime.GOMAXPROCS(0), e.workers)
	if p.open {
		shards = 1 // a request enters before it is known which worker it leaves by
	}
	for range shards {
		e.shards = append(e.shards, p.recorder())
	}
	return e
}

// drive carries out the plan. It returns what closes the connections.
func (e *netEngine) drive() (closeAll func()) {
	var abandon context.CancelFunc
	e.abandoned, abandon = context.WithCancel(context.Background())
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { e.watch(done, abandon) })
	if e.plan.open {
		e.workers = int(min(int64(e.workers), e.plan.maxFlight)) // no more than that have work
		e.dispatch()
	} else {
		e.loop()
	}
	e.wg.Wait()
	close(done)
	watch.Wait()
	return func() {
		for _, x := range e.made {
			x.close()
		}
		abandon()
	}
}

// watch gives up what is in flight or waiting when the plan says so.
func (e *netEngine) watch(done <-chan struct{}, abandon context.CancelFunc) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if nanotime() < e.plan.giveUp() {
			continue
		}
		abandon()
		e.mu.Lock()
		waiting := e.backlog.Drain()
		e.mu.Unlock()
		rec := e.shards[0]
		rec.Lock()
		for _, t := range waiting {
			rec.dropped(t, nanotime())
		}
		rec.Unlock()
	}
}

// worker makes worker k.
func (e *netEngine) worker(k int) *worker {
	rec := e.shards[k%len(e.shards)]
	w := &worker{exchanger: e.exchanger(k, rec), rec: rec, jobs: make(chan int64, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made = append(e.made, w.exchanger)
	return w
}

// loop runs the closed loop: each worker begins when its last answer has come.
func (e *netEngine) loop() {
	for k := range e.workers {
		e.wg.Go(func() {
			w := e.worker(k)
			var backoff time.Duration
			for {
				now := nanotime()
				if e.plan.ended(now) || !e.plan.take(now) {
					return
				}
				if _, ok := schedule(w.rec, now); !ok {
					continue
				}
				if w.do(e, now, now) {
					backoff = 0
					continue
				}
				backoff = min(max(2*backoff, time.Millisecond), maxBackoff)
				time.Sleep(backoff)
			}
		})
	}
}

// dispatch runs the open loop: it hands each intended start to a worker when
// its time has come.
func (e *netEngine) dispatch() {
	sleep := sys.PreciseSleep()
	for a := e.plan.arrivals(0, 1); ; {
		t := a.next()
		if t == never || !e.sleepUntil(t, sleep) || !e.plan.take(t) {
			break
		}
		e.put(t)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closing = true
	for _, w := range e.idle {
		close(w.jobs)
	}
	e.idle = nil
}

// sleepUntil reports whether the run still goes on at t, when it returns.
func (e *netEngine) sleepUntil(t int64, sleep func(time.Duration)) bool {
	spin := int64(e.plan.opts.Spin)
	for t < e.plan.closes() {
		now := nanotime()
		if d := t - spin - now; d > 0 {
			sleep(min(time.Duration(d), maxSleep))
			continue
		}
		e.poll(now, t)
		return true
	}
	return false
}

// poll passes the time from now to t, if any, without sleeping.
func (e *netEngine) poll(now, t int64) {
	if now >= t {
		return
	}
	from := now
	for now < t {
		now = nanotime()
	}
	if rec := e.shards[0]; from >= e.plan.measure {
		rec.Lock()
		rec.spun += now - from
		rec.Unlock()
	}
}

// put hands the request intended for t to an idle worker or a new one, which takes it
// up when it gets a processor, or takes it up itself and leaves it in the backlog.
//
// Note: to take up all of them here is plainer. What a worker waited for a processor
// then passed for a wait for a free connection.
func (e *netEngine) put(t int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.idle); n > 0 {
		w := e.idle[n-1]
		e.idle = e.idle[:n-1]
		w.jobs <- t // has room: an idle worker has none
		return
	}
	if e.started == e.workers {
		if _, ok := schedule(e.shards[0], t); ok {
			e.backlog.Push(t)
		}
		return
	}
	k := e.started
	e.started++
	e.wg.Go(func() {
		w := e.worker(k)
		w.jobs <- t
		e.serve(w)
	})
}

// serve carries out what w is handed until the run ends.
func (e *netEngine) serve(w *worker) {
	for t := range w.jobs {
		if now, ok := schedule(w.rec, t); ok {
			w.do(e, t, now)
		}
		for t, ok := e.next(w); ok; t, ok = e.next(w) {
			w.do(e, t, nanotime())
		}
	}
}

// next is the request that has waited longest; without one, w is idle.
func (e *netEngine) next(w *worker) (int64, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t, ok := e.backlog.Pop(); ok {
		return t, true
	}
	if e.closing {
		close(w.jobs)
	} else {
		e.idle = append(e.idle, w)
	}
	return 0, false
}

// schedule takes up a request now. It reports whether the request may begin.
func schedule(rec *recorder, intended int64) (now int64, ok bool) {
	rec.Lock()
	defer rec.Unlock()
	now = nanotime()
	return now, rec.scheduled(intended, now)
}

// do carries out one request. It reports false when no connection could be
// made.
func (w *worker) do(e *netEngine, intended, start int64) bool {
	w.o = outcome{intended: intended, start: start}
	kind, err := w.exchange(&w.o)
	w.o.end = nanotime()
	if err != nil && e.abandoned.Err() != nil {
		kind, err = failTimeout, errGivenUp
	}
	w.rec.Lock()
	defer w.rec.Unlock()
	if err == nil {
		w.rec.answered(&w.o, w.o.end)
		return true
	}
	w.rec.failed(kind, &w.o, err)
	return kind != failRefused
}

// opened records a new connection.
func (e *netEngine) opened(rec *recorder, l *dial.Link) {
	rec.Lock()
	defer rec.Unlock()
	rec.connected(int64(l.Connect))
	if l.Handshake > 0 {
		rec.handshaken(int64(l.Handshake), l.Resumed)
	}
}

// bounded is a context that ends with the request that began at start.
func (e *netEngine) bounded(start int64) (context.Context, context.CancelFunc) {
	return e.plan.bounded(e.abandoned, start)
}
