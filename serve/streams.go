package serve

import (
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/lease"
	"github.com/tarehq/tare/serve/internal/meter"
	"github.com/tarehq/tare/serve/internal/sys"
)

// guard holds requests by HTTP/2 to what the standard library's server does not know:
// the rules of targets and Host, Limits.MaxHeaders, StallTimeout and MinRate.
type guard struct {
	e    *engine
	next http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	on, _ := r.Context().Value(streamsKey{}).(*streams)
	if on == nil || r.ProtoMajor < 2 {
		g.next.ServeHTTP(w, r)
		return
	}
	if err := http1.CheckRequest(r, &g.e.options); err != nil {
		http.Error(w, strconv.Itoa(err.Status)+" "+http.StatusText(err.Status)+": "+err.Reason, err.Status)
		return
	}
	s := &stream{Writer: lease.Writer{To: w}, on: on}
	on.add(s)
	defer on.remove(s)
	whole := false
	defer func() {
		if !whole {
			s.Abort()
		}
	}()
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		r.Body = &streamBody{r.Body, s}
	}
	g.next.ServeHTTP(s, r)
	l := &g.e.limits
	whole = !s.ownWrite.Load() && (l.stall > 0 || l.write > 0) // else nothing ends a write that is under way
	s.allowEnd()
}

// streams are the requests at hand of a connection that speaks HTTP/2.
type streams struct {
	c     *conn
	mu    sync.Mutex
	open  map[*stream]struct{}
	quiet int64 // since when there is none, by the engine's clock
}

// streamsKey finds a connection's streams in the context of its requests.
type streamsKey struct{}

func newStreams(c *conn) *streams {
	return &streams{c: c, open: map[*stream]struct{}{}, quiet: c.e.clock.now()}
}

// context returns the connection's context, by which requests find s.
func (s *streams) context() context.Context { return context.WithValue(s.c.ctx, streamsKey{}, s) }

func (s *streams) add(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[one] = struct{}{}
}

func (s *streams) remove(one *stream) {
	one.End() // it may wait for a write, which the sweep can end until then
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.open, one); len(s.open) == 0 {
		s.quiet = s.c.e.clock.now()
	}
}

// due reports whether a stream's time is up.
func (s *streams) due(now int64) verdict {
	if s == nil {
		return carryOn
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.open {
		if one.due(now) != carryOn {
			return lapse
		}
	}
	return carryOn
}

// horizon returns a time before which nothing is due of streams, those that begin included.
func (s *streams) horizon(now int64) int64 {
	if s == nil {
		return never
	}
	e := s.c.e
	s.mu.Lock()
	defer s.mu.Unlock()
	at := e.after(now, e.limits.stall)
	for one := range s.open {
		if !one.ownRead.Load() {
			at = min(at, e.stallsFrom(&one.in, now))
		}
		if !one.ownWrite.Load() {
			at = min(at, e.stallsFrom(&one.out, now))
		}
	}
	return at
}

// lapse ends the streams whose time is up. It waits for nothing.
func (s *streams) lapse(now int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.open {
		switch one.due(now) {
		case lapseRead:
			one.in.Renew(now)
			go one.Writer.SetReadDeadline(longAgo)
		case lapseWrite:
			if one.reset { // a while ago, and that could not be written either
				s.c.abort()
				return
			}
			one.reset = true
			one.out.Renew(now)
			go one.Writer.SetWriteDeadline(longAgo)
		}
	}
}

// idleSince returns since when there is no stream, math.MaxInt64 if there is one.
func (s *streams) idleSince() int64 {
	if s == nil {
		return math.MaxInt64
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) > 0 {
		return math.MaxInt64
	}
	return s.quiet
}

// waiting reports whether there are streams and all of them wait for the client.
func (s *streams) waiting() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 {
		return false
	}
	for one := range s.open {
		if !one.waiting() {
			return false
		}
	}
	return true
}

// stream is one request by HTTP/2, as the handler answers it.
type stream struct {
	lease.Writer
	on      *streams
	in, out meter.Meter
	reset   bool // guarded by on.mu

	ownRead  atomic.Bool // the handler has set a deadline of its own
	ownWrite atomic.Bool
}

func (s *stream) due(now int64) verdict {
	l := &s.on.c.e.limits
	now = s.on.c.e.clock.sure(now)
	if !s.ownRead.Load() && s.in.Stalled(now, l.window) {
		return lapseRead
	}
	if !s.ownWrite.Load() && s.out.Stalled(now, l.window) {
		return lapseWrite
	}
	return carryOn
}

func (s *stream) waiting() bool {
	return s.in.Waiting() && !s.ownRead.Load() || s.out.Waiting() && !s.ownWrite.Load()
}

// endSize is what the standard library's server holds back of an answer until
// the handler returns.
const endSize = 4 << 10

// allowEnd bounds the time in which the client takes the end of an answer, which is sent after
// the handler's return. It adjusts the deadline that newHandover has had made for each stream:
// one that is made so late could outlive the stream.
func (s *stream) allowEnd() {
	l := &s.on.c.e.limits
	if l.stall == 0 || l.write > 0 || s.ownWrite.Load() {
		return
	}
	most := 2 * l.stall
	if l.rate > 0 {
		most = max(most, endSize*time.Second/time.Duration(l.rate))
	}
	s.Writer.SetWriteDeadline(time.Now().Add(most))
}

// pieceSize is how much of an answer is written at once. What the client takes
// of it shows only when all of it is taken.
const pieceSize = 16 << 10

func (s *stream) Write(p []byte) (n int, err error) {
	for err == nil && len(p)-n > pieceSize {
		var m int
		m, err = s.write(p[n : n+pieceSize])
		n += m
	}
	if err != nil {
		return n, err
	}
	m, err := s.write(p[n:])
	return n + m, err
}

// WriteString is Write without a copy.
func (s *stream) WriteString(p string) (int, error) { return s.Write(sys.Bytes(p)) }

func (s *stream) write(p []byte) (n int, err error) {
	e := s.on.c.e
	s.out.Begin(e.clock.now())
	n, err = s.Writer.Write(p)
	s.out.End(e.clock.now(), n, e.limits.window)
	return n, err
}

func (s *stream) Flush() { s.FlushError() }

func (s *stream) FlushError() error {
	e := s.on.c.e
	s.out.Begin(e.clock.now())
	err := s.Writer.FlushError()
	s.out.End(e.clock.now(), 0, e.limits.window)
	return err
}

func (s *stream) SetReadDeadline(t time.Time) error {
	s.ownRead.Store(true)
	return s.Writer.SetReadDeadline(t)
}

func (s *stream) SetWriteDeadline(t time.Time) error {
	s.ownWrite.Store(true)
	return s.Writer.SetWriteDeadline(t)
}

// streamBody is a request's body by HTTP/2.
type streamBody struct {
	io.ReadCloser
	s *stream
}

func (b *streamBody) Read(p []byte) (int, error) {
	if b.s.Over() {
		return 0, http.ErrBodyReadAfterClose
	}
	e := b.s.on.c.e
	b.s.in.Begin(e.clock.now())
	n, err := b.ReadCloser.Read(p)
	b.s.in.End(e.clock.now(), n, e.limits.window)
	return n, err
}
