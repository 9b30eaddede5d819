// Package accesslog writes a line for each request.
//
// Lines go to a buffer in memory, from which one goroutine writes them; requests do
// not wait for the disk. The buffer is bounded. What happens when it is full is chosen
// and counted: the oldest lines are dropped, the newest, or requests wait. With
// Options.Sync each request writes its own line instead.
//
// Every byte that a client sent is escaped, so that it can make no line of its own, no
// field of a line, and no command to the terminal that shows it. Queries are left out
// unless asked for: they have tokens and names in them. With Options.Slog the requests are
// records of a slog.Handler, which does the escaping and the waiting.
//
// A line that is longer than Options.Buffer is written with each of its strings cut to 1,024
// bytes: a client that sends a very long field does not stay out of the log.
//
// When the writer fails or panics, as on a full disk, its lines are lost and counted by
// [Log.Lost]; requests go on. If a function of Options panics, the line is written without what
// it had to say, as one that panicked, and the panic passes on.
//
// A writer that blocks, as a pipe that nobody reads, fills
// the buffer. Standard output is a special case of Go: writing to a pipe there that has
// no reader ends the process, unless the program ignores SIGPIPE.
//
// Place: directly behind recovery, requestid and clientaddr: what is refused further in
// is logged, too.
//
// Cost: it allocates nothing in a chain, but what a handler of slog takes; elsewhere it makes a
// recorder of the answer.
// BenchmarkLine says what a line costs the request.
package accesslog

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/outcome"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/middleware/requestid"
)

// Policy is what happens to a line for which the buffer has no room.
type Policy int

// The policies.
const (
	DropNewest Policy = iota // the line is dropped
	DropOldest               // a part of the buffer, the oldest, is dropped to make room
	Wait                     // the request waits
)

// Options of a log. To or Slog must be set.
type Options struct {
	// To is where lines are written, several at a time, by one goroutine. With Sync:
	// one at a time, under a lock.
	To io.Writer
	// Slog gets a record for each request in place of a line: an error from status 500 on, else
	// of level info, with the request's context. It is called before the request ends. A handler
	// that keeps records does not go with Server.Reuse of package serve. Format, Sync, Buffer,
	// Full and Every do not apply.
	Slog slog.Handler
	// Format writes a line. Nil: [JSON].
	Format Format
	// Sync has each request write its line before it ends.
	Sync bool
	// Buffer is how many bytes of lines wait at most, and as many again are being
	// written. 0: 256 KiB.
	Buffer int
	// Full is what happens when the buffer is full.
	Full Policy
	// Every is the longest time that a line waits to be written. 0: a second.
	Every time.Duration
	// Query has queries logged, of targets and referers.
	Query bool
	// User returns the name of who asked, after the request was answered. Nil: none.
	User func(*http.Request) string
	// Trace returns the identifier of the request's trace, after the request was answered.
	// Nil: none. tracing.ID of serve/tracing is one; tracing must stand outside, unless
	// both are in a chain.
	Trace func(*http.Request) string
	// Upstream returns the server that a proxy asked, after the request was answered. Nil: none.
	Upstream func(*http.Request) Upstream
	// Keep says, after the request was answered, whether its line is written: for
	// sampling. Nil: all are.
	Keep func(*http.Request, *Line) bool
}

// Log is an access log. It is safe for concurrent use.
type Log struct {
	o       Options
	scratch sync.Pool // *entry
	_       [64]byte  // what each request writes is on no cache line with what others read
	out     output
}

// entry is the memory for making one line.
type entry struct {
	line Line
	text []byte
}

// Defaults and bounds of Options.
const (
	defaultBuffer = 256 << 10
	defaultEvery  = time.Second
	leastBuffer   = 64 << 10 // a line whose strings are cut must find room
)

// New starts a log. Close ends it.
func New(o Options) (*Log, error) {
	switch {
	case o.To == nil && o.Slog == nil:
		return nil, errors.New("accesslog: neither Options.To nor Options.Slog is set: where do lines go?")
	case o.To != nil && o.Slog != nil:
		return nil, errors.New("accesslog: Options.To and Options.Slog exclude one another")
	case o.Buffer < 0 || o.Buffer > 0 && o.Buffer < leastBuffer:
		return nil, errors.New("accesslog: Options.Buffer is less than 65,536 bytes")
	case o.Every < 0:
		return nil, errors.New("accesslog: Options.Every is negative")
	case o.Full < DropNewest || o.Full > Wait:
		return nil, errors.New("accesslog: Options.Full is none of DropNewest, DropOldest, Wait")
	}
	if o.Format == nil {
		o.Format = JSON
	}
	if o.Buffer == 0 {
		o.Buffer = defaultBuffer
	}
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	o.Sync = o.Sync || o.Slog != nil // nothing waits
	l := &Log{o: o, scratch: sync.Pool{New: func() any { return new(entry) }}}
	l.out.start(&l.o)
	return l, nil
}

// Middleware logs what reaches next. In a chain its layer is called accesslog, in the
// role log.
func (l *Log) Middleware(next http.Handler) http.Handler { return &handler{l, next} }

// Lost returns how many lines were not written: dropped from a full buffer, or refused
// by the writer.
func (l *Log) Lost() uint64 { return l.out.lost.Load() }

// Close writes what waits, until ctx is done, and returns the last error of the writer,
// or of ctx. It does not close the writer. Call it when the server is shut down; lines
// after it are lost.
func (l *Log) Close(ctx context.Context) error { return l.out.close(ctx) }

type handler struct {
	l    *Log
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "accesslog", Roles: []string{"log"}, Rules: []chain.Rule{
		chain.Before("auth", "requests that it refuses would not be logged"),
		chain.Before("limit", "requests that it refuses would not be logged"),
		chain.Before("cache", "requests that it answers would not be logged"),
		chain.Before("timeout", "the answer of a request that timed out would not be seen"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, rec := chain.Record(w)
	begun, done := rec.Begun(), false
	defer func() { h.l.note(r, rec, begun, !done) }() // also if the handler panics
	h.next.ServeHTTP(w, r)
	done = true
}

// note writes the line of a request that was answered.
func (l *Log) note(r *http.Request, rec *chain.Recorder, begun time.Time, panicked bool) {
	e := l.scratch.Get().(*entry)
	line := &e.line // which is empty
	line.Time, line.Took = begun, time.Since(begun)
	line.Status, line.Bytes, line.Hijacked, line.Panicked = outcome.Status(r, rec, panicked), outcome.Bytes(r, rec), rec.Hijacked(), panicked
	line.fill(r)
	if !l.o.Query {
		line.Referer, _, _ = strings.Cut(line.Referer, "?")
		line.Target, _, _ = strings.Cut(line.Target, "?")
	}
	if l.o.User != nil || l.o.Trace != nil || l.o.Upstream != nil || l.o.Keep != nil {
		l.ask(r, rec, e)
	} else {
		l.write(r, e)
	}
	*line = Line{} // keep nothing of the request
	l.scratch.Put(e)
}

// ask completes the line by what Options says, and writes it if it is kept. If one of them
// panics, it is written as it is by then, and the panic passes on.
func (l *Log) ask(r *http.Request, rec *chain.Recorder, e *entry) {
	kept, whole := true, false
	defer func() {
		if !whole {
			e.line.Panicked, e.line.Status = true, outcome.Status(r, rec, true)
		}
		if kept {
			l.write(r, e)
		}
	}()
	if l.o.User != nil {
		e.line.User = l.o.User(r)
	}
	if l.o.Trace != nil {
		e.line.Trace = l.o.Trace(r)
	}
	if l.o.Upstream != nil {
		e.line.Upstream = l.o.Upstream(r)
	}
	if l.o.Keep != nil {
		kept = l.o.Keep(r, &e.line)
	}
	whole = true
}

// write has a line written. If Options.Format panics, it is lost.
func (l *Log) write(r *http.Request, e *entry) {
	made := false
	defer func() {
		if !made {
			l.out.lost.Add(1)
		}
	}()
	if l.o.Slog != nil {
		made = e.line.report(r.Context(), l.o.Slog) == nil
		return
	}
	e.text = l.o.Format(e.text[:0], &e.line)
	if len(e.text) > l.o.Buffer {
		e.line.cut()
		e.text = l.o.Format(nil, &e.line) // the pool keeps no memory of that size
	}
	made = true
	l.out.add(e.text)
}

// fill notes what the request says.
func (l *Line) fill(r *http.Request) {
	l.ID, l.Client = requestid.From(r.Context()), clientaddr.From(r)
	l.Method, l.Host, l.Target, l.Route, l.Proto = r.Method, r.Host, r.RequestURI, r.Pattern, r.Proto
	if v := r.Header["Referer"]; len(v) > 0 {
		l.Referer = v[0]
	}
	if v := r.Header["User-Agent"]; len(v) > 0 {
		l.Agent = v[0]
	}
}
