// Package flight keeps what the execution tracer saw just before a request was
// found slow.
//
// The runtime's flight recorder remembers the last seconds of execution. When a
// handler took longer than a bound, a snapshot of it is written, at most one a
// minute: in it is what the request waited for, for a lock, a processor, the
// collector, another service, and what everybody else did meanwhile. Read it by
// tare trace FILE or go tool trace FILE.
//
// What it costs: the recorder runs all the time. Every wait, wake-up and system
// call of the process is noted; BenchmarkRecorder says what that comes to, docs/trace.md
// what it was where it was tried. A snapshot is written on a goroutine of its own:
// no request waits for it. A request that never ends is not noticed.
//
// Not for measuring how long requests take: that is what histograms are for.
package flight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"runtime/trace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/safelog"
)

// Options say what is slow and where snapshots go. SlowerThan and either Dir or
// Sink must be set.
type Options struct {
	SlowerThan time.Duration // a request whose handler takes this long is slow

	Dir  string // folder for snapshots, slow-TIME.trace, made if it is not there
	Keep int    // how many of the snapshots in Dir to keep, the newest; 0: 10, negative: all
	// Sink opens what the snapshot of a request is written to, instead of Dir. It is
	// called on a goroutine of the recorder's, and what it returns is used and closed
	// there. A panic is recovered and logged. While it blocks, there are no snapshots.
	Sink func(Request) (io.WriteCloser, error)

	AtMostEvery time.Duration // the least time between snapshots; 0: a minute
	// MinAge is for how long back the recorder remembers, if MaxBytes suffices;
	// 0: twice SlowerThan, and at least 3 s.
	MinAge time.Duration
	// MaxBytes is how much the recorder remembers, about; 0: 16 MiB. A snapshot of
	// more than twice that is thrown away.
	MaxBytes int64

	Skip func(*http.Request) bool // requests that may take long; nil: those that ask for an upgrade
	Log  *slog.Logger             // records snapshots and failures to write them; nil: none
}

// Request is a slow request.
type Request struct {
	Method  string
	Pattern string // that it matched or, if no router tells, its path; never its query
	Begun   time.Time
	Took    time.Duration // in the handler, at least
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s, %s in its handler", r.Method, r.Pattern, r.Took.Round(time.Microsecond))
}

// Defaults of Options.
const (
	defaultEvery = time.Minute
	defaultAge   = 3 * time.Second
	defaultBytes = 16 << 20
	defaultKeep  = 10
)

// settle is how long a snapshot waits, so that the end of the request is in it.
const settle = 20 * time.Millisecond

// patience is how long Close waits for a snapshot under way.
const patience = 10 * time.Second

// Recorder is the flight recorder and its middleware. It is safe for concurrent
// use. A process can have one at a time.
type Recorder struct {
	o      Options
	fr     *trace.FlightRecorder
	begun  time.Time
	next   atomic.Int64 // when there may be another snapshot: nanoseconds since begun
	slow   chan Request
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	patience  time.Duration      // of Close
	impatient context.Context    // done when it is at an end
	abandon   context.CancelFunc // ends it
}

// New starts the flight recorder. Close ends it.
func New(o Options) (*Recorder, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("flight: %w", err)
	}
	if o.Sink == nil {
		d, err := newFolder(o.Dir, o.Keep)
		if err != nil {
			return nil, fmt.Errorf("flight: %w", err)
		}
		o.Sink = d.open
	}
	r := &Recorder{
		o: o, begun: time.Now(), slow: make(chan Request, 1), patience: patience,
		fr: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: o.MinAge, MaxBytes: uint64(o.MaxBytes)}),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.impatient, r.abandon = context.WithCancel(context.Background())
	if err := r.fr.Start(); err != nil {
		r.cancel()
		r.abandon()
		return nil, fmt.Errorf("flight: starting the recorder: %w", err)
	}
	r.done.Go(r.write)
	return r, nil
}

// check fills in defaults.
func (o *Options) check() error {
	switch {
	case o.SlowerThan <= 0:
		return errors.New("Options.SlowerThan is not set: from what duration on is a request slow?")
	case o.Dir == "" && o.Sink == nil:
		return errors.New("neither Options.Dir nor Options.Sink is set: where do snapshots go?")
	case o.Dir != "" && o.Sink != nil:
		return errors.New("Options.Dir and Options.Sink exclude one another")
	case o.AtMostEvery < 0 || o.MinAge < 0 || o.MaxBytes < 0:
		return errors.New("Options.AtMostEvery, MinAge and MaxBytes are no less than 0")
	}
	if o.AtMostEvery == 0 {
		o.AtMostEvery = defaultEvery
	}
	if o.MinAge == 0 {
		o.MinAge = max(2*o.SlowerThan, defaultAge)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.Skip == nil {
		o.Skip = upgrades
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = safelog.New(o.Log)
	return nil
}

// upgrades reports whether a request asks for another protocol on its connection,
// which may go on for hours.
func upgrades(r *http.Request) bool { return r.Header["Upgrade"] != nil }

// Middleware watches what next takes. It belongs outside of everything whose time
// is to count. In a chain of package chain it is called flight; it must stand
// there once, and not after a layer whose role is limit, where requests may wait.
func (r *Recorder) Middleware(next http.Handler) http.Handler { return &handler{r, next} }

// Close stops the recorder, once a snapshot under way is written. It waits for that
// no longer than 10 s: a Sink that blocks is then left to itself, with its
// goroutine. Handlers stay usable and are watched no longer.
func (r *Recorder) Close() {
	r.cancel()
	late := time.AfterFunc(r.patience, r.abandon)
	r.done.Wait()
	late.Stop()
	r.abandon()
	r.fr.Stop()
}

type handler struct {
	r    *Recorder
	next http.Handler
}

// ChainLayer tells a chain where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "flight", Rules: []chain.Rule{
		chain.Once("a slow request would be noted twice"),
		chain.Before("limit", "what a request waits there would not count"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	begun := time.Now()
	defer func() { // also if the handler panics
		if took := time.Since(begun); took >= h.r.o.SlowerThan {
			h.r.noteSlow(req, begun, took)
		}
	}()
	h.next.ServeHTTP(w, req)
}

// noteSlow writes the request into the trace, and asks for a snapshot if it is
// time for one.
func (r *Recorder) noteSlow(req *http.Request, begun time.Time, took time.Duration) {
	if r.ctx.Err() != nil || r.o.Skip(req) {
		return
	}
	found := Request{Method: strings.Clone(req.Method), Pattern: strings.Clone(patternOf(req)), Begun: begun, Took: took}
	trace.Log(req.Context(), "slow request", found.String())
	now := int64(time.Since(r.begun))
	next := r.next.Load()
	if now < next || !r.next.CompareAndSwap(next, now+min(int64(r.o.AtMostEvery), math.MaxInt64-now)) {
		return
	}
	select {
	case r.slow <- found:
	default: // the last one is still being written
	}
}

// patternOf names what a request is for, without what identifies anybody in its
// query.
func patternOf(req *http.Request) string {
	const most = 200
	name := req.Pattern
	if name == "" {
		name = req.URL.Path
	} else if _, path, ok := strings.Cut(name, " "); ok {
		name = path // the method stands beside it
	}
	return name[:min(len(name), most)]
}

// write writes the snapshots that are asked for.
func (r *Recorder) write() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case found := <-r.slow:
			select {
			case <-r.ctx.Done():
			case <-time.After(settle):
			}
			if err := r.snapshot(found); err != nil {
				r.o.Log.Error("writing a snapshot of the flight recorder", "request", found.String(), "err", err)
				continue
			}
			r.o.Log.Info("slow request: wrote a snapshot of the flight recorder", "request", found.String())
		}
	}
}
