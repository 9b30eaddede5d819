package flow

import (
	"container/heap"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/flow/script"
	"github.com/tarehq/tare/load/internal/sys"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
)

// Options say how to run a file. The zero value works.
type Options struct {
	Connections int            // open to one host at a time, at most; 0 = 4096
	TLS         *tls.Config    // nil verifies as usual
	Seed        uint64         // of every random choice; 0 = 1
	Slice       time.Duration  // period of Result.Series; 0 = 1 s
	Progress    func(Snapshot) // called about four times a second from one goroutine
	Memory      func() uint64  // asked once a slice, from the same: the service's memory in bytes; 0 = not known
	Mark        func(bool)     // called from one goroutine when the measured part begins (true) and when it ends (false)
	CPUs        []int          // that the whole process is kept on meanwhile, where the system can; nil = where it may run
}

// Threads is how many threads run at a time.
func (o *Options) Threads() int {
	if n := len(o.CPUs); n > 0 {
		return min(n, runtime.GOMAXPROCS(0))
	}
	return runtime.GOMAXPROCS(0)
}

// The defaults of a file, and bounds of the run.
const (
	defaultWait = 30 * time.Second // of Drain and Timeout
	defaultMost = 100_000
	maxNap      = time.Millisecond       // of the dispatcher where it sleeps precisely, which nobody ends
	backoff     = 100 * time.Millisecond // of a counted user whose session reached nobody
	teardown    = 10 * time.Second       // at most
)

// run is a load under way.
type run struct {
	file   *script.File
	o      Options
	sender sender
	ctx    context.Context // of requests
	closed bool
	flows  []*script.Program
	weight int
	base   script.Values // after the set-up
	begin  int64         // of the measured part
	end    int64
	length time.Duration  // of the measured part
	under  sync.WaitGroup // goroutines that have a user
	woken  chan struct{}  // ends the dispatcher's sleep

	mu       sync.Mutex
	rng      *rand.Rand
	thinking clock
	users    int
	number   int
	last     int64 // end of the last answer
	res      Result
	rec      *hist.Hist // of the slice under way
	slice    load.Slice
}

func (r *run) now() int64 { return r.sender.now() }

// Run takes the set-up, offers the load, and takes the tear-down. When ctx ends, the result
// is what was measured until then. The error is that of the set-up, without a result.
func Run(ctx context.Context, f *script.File, o Options) (*Result, error) {
	r := newRun(f, o)
	defer sys.Confine(o.CPUs)()
	defer r.sender.transport.CloseIdleConnections()
	setUp, tearDown := f.Around()
	known, err := r.once(ctx, setUp, f.Know())
	if err != nil {
		return nil, fmt.Errorf("set-up: %w", err)
	}
	r.base = known
	r.offer(ctx)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardown)
	defer cancel()
	if _, err := r.once(after, tearDown, known); err != nil {
		r.res.Warnings = append(r.res.Warnings, fmt.Errorf("tear-down: %w", err))
	}
	return &r.res, nil
}

func newRun(f *script.File, o Options) *run {
	orElse := func(d, other time.Duration) time.Duration {
		if d > 0 {
			return d
		}
		return other
	}
	o.Seed, o.Slice = max(1, o.Seed), orElse(o.Slice, time.Second)
	if o.Connections <= 0 {
		o.Connections = 4096
	}
	r := &run{file: f, o: o, flows: f.Programs(), length: f.Planned(), closed: f.Users.Arrive == nil, rng: rand.New(rand.NewPCG(o.Seed, 2)), rec: hist.New(), woken: make(chan struct{}, 1)}
	r.sender = sender{timeout: orElse(f.Timeout, defaultWait), redirects: f.Redirects, cookies: f.Cookies, transport: &http.Transport{
		MaxIdleConns: 0, MaxIdleConnsPerHost: o.Connections, MaxConnsPerHost: o.Connections, IdleConnTimeout: 90 * time.Second,
		DisableCompression: true, TLSClientConfig: o.TLS, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		DialContext: (&net.Dialer{KeepAlive: -1}).DialContext,
	}}
	for _, p := range r.flows {
		r.weight += p.Weight
	}
	for _, s := range f.Sent() {
		r.res.Steps = append(r.res.Steps, Operation{Flow: s.Flow, Step: s.Name, FailIf: s.FailIf, statusAsked: s.StatusAsked, Causes: []string{}, Response: hist.New(), Service: hist.New()})
	}
	r.res.Series, r.res.Memory = []load.Slice{}, []uint64{}
	r.res.Requests = Operation{Causes: []string{}, Response: hist.New(), Service: hist.New()}
	r.res.Sessions.Waited, r.res.Sessions.Whole, r.res.Generator.Lag = hist.New(), hist.New(), hist.New()
	return r
}

// once takes a program as one user, unrecorded, and returns what the user then knows.
func (r *run) once(ctx context.Context, p *script.Program, known script.Values) (script.Values, error) {
	u := &user{Walk: script.Walk{Program: p}, Witness: r.witness(slices.Clone(known))}
	for {
		q, think, more := u.Next(u.Known, u.Rand)
		if !more {
			return u.Known, nil
		}
		if q == nil {
			select {
			case <-ctx.Done():
			case <-time.After(think):
			}
		} else if out := r.sender.send(ctx, u, q); out.err != nil && !q.GoOn {
			return nil, fmt.Errorf("step %s: %w", r.file.Sent()[q.Step].Name, out.err)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (r *run) witness(known script.Values) script.Witness {
	return script.Witness{Known: known, Rand: rand.New(rand.NewPCG(r.rng.Uint64(), r.rng.Uint64()))}
}

// offer has users come until the measured part is over, and follows them to their end.
func (r *run) offer(ctx context.Context) {
	requests, give := context.WithCancel(context.WithoutCancel(ctx))
	defer give()
	r.ctx = requests
	r.sender.epoch = time.Now()
	r.begin = int64(r.file.WarmUp)
	r.end = r.begin + int64(r.length)
	r.res.Started = r.sender.epoch.Add(r.file.WarmUp)
	r.last = r.begin
	observed := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(observed)
		r.observe(stop)
	}()
	marked := r.mark(ctx)
	drain := r.file.Drain
	if drain == 0 {
		drain = defaultWait
	}
	arrive := r.arrivals()
	next := r.enter(arrive)
	sleep := sys.PreciseSleep()
	for {
		now := r.now()
		wake, under := r.dispatch(now, &next, arrive)
		if over := now >= r.end && under == 0; over || ctx.Err() != nil || now >= r.end+int64(drain) {
			if ctx.Err() != nil {
				r.res.Ended = "interrupted"
			}
			break
		}
		r.sleep(ctx, min(wake, r.end+int64(drain))-now, sleep)
	}
	runtime.UnlockOSThread()
	give()
	r.under.Wait()
	close(stop)
	<-observed
	<-marked
	r.finish()
}

// mark tells when the measured part begins and when it ends, at once where ctx has. What it
// returns is closed then.
func (r *run) mark(ctx context.Context) <-chan struct{} {
	marked := make(chan struct{})
	go func() {
		defer close(marked)
		for i, at := range []int64{r.begin, r.end} {
			if r.o.Mark == nil {
				return
			}
			select {
			case <-time.After(time.Duration(at - r.now())):
			case <-ctx.Done():
			}
			r.o.Mark(i == 0)
		}
	}()
	return marked
}

// sleep waits for so many nanoseconds, or until a user is due before, or the last one leaves.
func (r *run) sleep(ctx context.Context, ns int64, precisely func(time.Duration)) {
	d := time.Duration(ns)
	if d <= 2*maxNap {
		precisely(min(maxNap, max(d, 10*time.Microsecond)))
		return
	}
	early := time.NewTimer(d - maxNap)
	defer early.Stop()
	select {
	case <-early.C:
	case <-r.woken:
	case <-ctx.Done():
	}
}

// wakeUp ends the dispatcher's sleep.
func (r *run) wakeUp() {
	select {
	case r.woken <- struct{}{}:
	default: // it is woken already
	}
}

// arrivals are the intended starts of sessions, warm-up first; nil in the closed loop.
func (r *run) arrivals() *pace.Cursor {
	s := r.file.Users.Arrive
	if s == nil {
		return nil
	}
	whole := &pace.Schedule{Random: s.Random, Seed: r.o.Seed, Phases: s.Phases}
	if r.file.WarmUp > 0 {
		rate := s.RateAt(0)
		whole.Phases = append([]pace.Phase{{From: rate, To: rate, For: r.file.WarmUp}}, s.Phases...)
	}
	return whole.Cursor(0, 1)
}

// never is after every run.
const never = int64(1) << 62

// enter has counted users wait for their beginnings, or gives the first arrival.
func (r *run) enter(arrive *pace.Cursor) (next int64) {
	if arrive != nil {
		return nextOf(arrive)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.file.Users.Count
	for i := range n {
		u := r.newUser()
		u.intended = int64(r.file.Users.Within) * int64(i) / int64(n)
		heap.Push(&r.thinking, u)
	}
	r.users, r.res.Sessions.Peak = n, n
	return never
}

func nextOf(arrive *pace.Cursor) int64 {
	if at, ok := arrive.Next(); ok {
		return int64(at)
	}
	return never
}

func (r *run) newUser() *user {
	return &user{Witness: r.witness(r.file.Know())}
}

// dispatch lets users arrive and go on who are due by now. It returns when the next is, and
// how many users are under way.
func (r *run) dispatch(now int64, next *int64, arrive *pace.Cursor) (wake int64, under int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.file.Users.Most
	if most == 0 {
		most = defaultMost
	}
	for *next <= now && *next < r.end {
		if r.users < most {
			u := r.newUser()
			u.intended = *next
			r.users++
			r.res.Sessions.Peak = max(r.res.Sessions.Peak, r.users)
			r.resume(u)
		} else if *next >= r.begin {
			r.res.Sessions.Dropped++
		}
		*next = nextOf(arrive)
	}
	for u := r.thinking.due(now); u != nil; u = r.thinking.due(now) {
		r.resume(u)
	}
	wake = min(*next, r.end)
	if now >= r.end {
		wake = never
	}
	if len(r.thinking) > 0 {
		wake = min(wake, r.thinking[0].intended)
	}
	return wake, r.users
}

// resume gives a user a goroutine until the user thinks again.
func (r *run) resume(u *user) {
	r.under.Go(func() { r.goOn(u) })
}

// goOn takes a user's steps until there is time to think or the user leaves.
func (r *run) goOn(u *user) {
	for {
		if u.Program == nil && !r.start(u) {
			return
		}
		q, think, more := u.Next(u.Known, u.Rand)
		stays := true
		switch {
		case !more:
			stays = r.leave(u, nil)
		case q == nil:
			u.intended += int64(think)
			if r.now() < u.intended {
				r.wait(u)
				return
			}
		default:
			if err := r.request(u, q); err != nil && (!q.GoOn || errors.Is(err, context.Canceled)) {
				stays = r.leave(u, err)
			}
		}
		if !stays {
			return
		}
	}
}

// wait puts a user into the heap, from which dispatch takes it.
func (r *run) wait(u *user) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.think(u)
}

// think puts a user into the heap; the caller holds the lock.
func (r *run) think(u *user) {
	heap.Push(&r.thinking, u)
	if r.thinking[0] == u {
		r.wakeUp()
	}
}

// start begins a session of a user; false is that the load is over.
func (r *run) start(u *user) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed && (u.intended >= r.end || r.ctx.Err() != nil) {
		r.gone()
		return false
	}
	pick := r.rng.IntN(r.weight)
	for _, p := range r.flows {
		if pick -= p.Weight; pick < 0 {
			u.Walk = script.Walk{Program: p}
			break
		}
	}
	r.number++
	r.file.Begin(r.number, r.base, u.Known)
	u.waited, u.began, u.jar, u.reached = 0, u.intended, nil, false
	if r.counted(u) {
		r.res.Sessions.Begun++
	}
	return true
}

// gone counts a user off who has left; the caller holds the lock.
func (r *run) gone() {
	if r.users--; r.users == 0 {
		r.wakeUp()
	}
}

// counted reports whether a session belongs to the measured part.
func (r *run) counted(u *user) bool { return u.began >= r.begin && u.began < r.end }

// leave ends a session. It reports whether the goroutine keeps the user, who begins again.
func (r *run) leave(u *user, err error) (stays bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.res.Sessions
	switch {
	case !r.counted(u), errors.Is(err, context.Canceled): // the latter is unfinished
	case err != nil:
		s.Failed++
	default:
		s.Completed++
		s.Waited.Record(u.waited)
		s.Whole.Record(u.intended - u.began)
	}
	u.Program = nil
	switch {
	case !r.closed:
		r.gone()
		return false
	case !u.reached:
		u.intended += int64(backoff)
		r.think(u)
		return false
	}
	return true
}

// request sends one and records it. The error wraps context.Canceled where the run ended
// before it had.
func (r *run) request(u *user, q *script.Request) error {
	start := r.now()
	out := r.sender.send(r.ctx, u, q)
	end := out.end
	if out.err != nil && r.ctx.Err() != nil {
		return context.Canceled
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	intended := u.intended
	u.intended = end
	u.reached = u.reached || out.status > 0 || out.kind != refused && out.kind != dropped
	within := out.status > 0 && end >= r.begin && end <= r.end
	if intended < r.begin {
		r.res.WarmUp++
		if within {
			r.res.Carried++
		}
		return out.err
	}
	if within {
		r.res.Within++
	}
	u.waited += end - intended
	r.last = max(r.last, end)
	r.res.Generator.Lag.Record(start - intended)
	for _, op := range []*Operation{&r.res.Steps[q.Step], &r.res.Requests} {
		op.record(&out, end-intended, end-start)
	}
	switch {
	case out.status > 0:
		r.slice.Answered++
		r.rec.Record(end - intended)
	case out.kind == dropped:
		r.slice.Dropped++
	default:
		r.slice.Failed++
	}
	return out.err
}

// record adds a request.
func (o *Operation) record(out *outcome, response, service int64) {
	out.count(&o.Counts)
	if out.untaken {
		o.Untaken++
	}
	if out.err != nil && len(o.Causes) < mostCauses && o.Step != "" && !slices.Contains(o.Causes, out.err.Error()) {
		o.Causes = append(o.Causes, out.err.Error())
	}
	if out.status > 0 {
		o.Response.Record(response)
		o.Service.Record(service)
	}
}
