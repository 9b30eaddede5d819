package load_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// speaking answers each request on HTTP/2 connections by act, which is told how many came
// before on any.
func speaking(t *testing.T, act func(f *http2.Framer, stream uint32, before int64) bool) (addr string, accepted func() uint64) {
	t.Helper()
	var n atomic.Int64
	return hostile(t, func(c net.Conn) {
		f := http2.NewFramer(c, c)
		f.AllowIllegalWrites = true
		f.WriteSettings()
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if h, ok := frame.(*http2.HeadersFrame); ok && !act(f, h.StreamID, n.Add(1)-1) {
				return
			}
		}
	})
}

// answer200 answers a stream with status 200 and a body of "ok".
func answer200(f *http2.Framer, stream uint32) {
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x88}, EndHeaders: true})
	f.WriteData(stream, true, []byte("ok"))
}

// TestHTTP2HostileServer counts ends against what the server did.
func TestHTTP2HostileServer(t *testing.T) {
	for name, tt := range map[string]struct {
		act  func(f *http2.Framer, stream uint32, before int64) bool
		want func(load.Counts) uint64
	}{
		"close": {func(*http2.Framer, uint32, int64) bool { return false }, func(c load.Counts) uint64 { return c.Reset }},
		"reset": {func(f *http2.Framer, s uint32, _ int64) bool { f.WriteRSTStream(s, http2.ErrCodeInternal); return true }, func(c load.Counts) uint64 { return c.Reset }},
		"refuse": {func(f *http2.Framer, s uint32, _ int64) bool {
			f.WriteRSTStream(s, http2.ErrCodeRefusedStream)
			return true
		}, func(c load.Counts) uint64 { return c.Reset }},
		"breach": {func(f *http2.Framer, s uint32, _ int64) bool {
			f.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, []byte{0})
			return true
		}, func(c load.Counts) uint64 { return c.Malformed }},
		"another stream": {func(f *http2.Framer, s uint32, _ int64) bool { answer200(f, s+100); return true }, func(c load.Counts) uint64 { return c.Malformed }},
		"two answers":    {func(f *http2.Framer, s uint32, _ int64) bool { answer200(f, s); answer200(f, s); return true }, func(c load.Counts) uint64 { return c.Status[2] }},
		"close within": {func(f *http2.Framer, s uint32, _ int64) bool {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte{0x88}, EndHeaders: true})
			f.WriteData(s, false, []byte("o"))
			return false
		}, func(c load.Counts) uint64 { return c.Short }},
		"reset within": {func(f *http2.Framer, s uint32, _ int64) bool {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte{0x88}, EndHeaders: true})
			f.WriteRSTStream(s, http2.ErrCodeCancel)
			return true
		}, func(c load.Counts) uint64 { return c.Short }},
		"part of a frame": {func(f *http2.Framer, s uint32, _ int64) bool {
			f.WriteRawFrame(http2.FrameHeaders, 0, s, nil)
			return false
		}, func(c load.Counts) uint64 { return c.Reset }},
	} {
		t.Run(name, func(t *testing.T) {
			addr, accepted := speaking(t, tt.act)
			r, err := load.Run(context.Background(), load.Options{Engine: load.Epoll, Protocol: load.HTTP2, Requests: 12, Connections: 2, Streams: 3,
				Timeout: time.Minute, Targets: []load.Target{{URL: "http://" + addr, Verify: load.Verify{Contains: "ok"}}}})
			if r == nil {
				t.Fatal(err)
			}
			checkSums(t, r)
			if got := tt.want(r.Counts); got < 2 || r.Counts.Scheduled != 12 || name == "two answers" && got != 12 {
				t.Errorf("got %+v (%v), want all or those on which the server acted of the kind", r.Counts, err)
			}
			if got := accepted(); got > 12 {
				t.Errorf("the server saw %d connections for 12 requests", got)
			}
		})
	}
}

// TestHTTP2HostileMix lets a server do its worst in turn. Whatever it does, every request
// has one end, and none is sent twice.
func TestHTTP2HostileMix(t *testing.T) {
	for _, schedule := range []*pace.Schedule{nil, pace.Poisson(2000, 1)} {
		var seen atomic.Uint64
		addr, _ := speaking(t, func(f *http2.Framer, s uint32, before int64) bool {
			seen.Add(1)
			switch before % 23 {
			case 3:
				f.WriteRSTStream(s, http2.ErrCodeInternal)
			case 7:
				f.WriteGoAway(s, http2.ErrCodeNo, nil)
				answer200(f, s)
			case 11:
				return false
			case 13: // never
			case 17:
				f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte{0x82}, EndHeaders: true, EndStream: true})
			case 19:
				f.WritePing(false, [8]byte{1})
				f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte{0x88}, EndHeaders: true})
				f.WriteDataPadded(s, true, []byte("o"), make([]byte, 100))
			case 22:
				f.WriteRawFrame(http2.FrameHeaders, 0x5, s, []byte{0xff})
			default:
				answer200(f, s)
			}
			return true
		})
		r := run(t, context.Background(), load.Options{Engine: load.Epoll, Protocol: load.HTTP2, Schedule: schedule, Connections: 4, Streams: 4,
			Requests: 1500, Timeout: 50 * time.Millisecond, Targets: []load.Target{{URL: "http://" + addr, Verify: load.Verify{Contains: "ok"}}}})
		c := r.Counts
		if c.Scheduled != 1500 || c.Status[2] == 0 || c.Malformed == 0 || c.Timeout == 0 || c.Reset == 0 || c.Unverified == 0 {
			t.Errorf("got %+v, want 1500 requests with every kind of end", c)
		}
		if n := seen.Load(); n > c.Scheduled || n+c.Reset+c.Timeout+c.Malformed+c.Dropped < c.Scheduled {
			t.Errorf("the server saw %d requests, the result is %+v", n, c)
		}
	}
}

// A server that ends each connection before it takes a request has requests fail: they are
// not tried without end.
func TestHTTP2GoAwayAtOnce(t *testing.T) {
	addr, accepted := hostile(t, func(c net.Conn) {
		f := http2.NewFramer(c, c)
		f.WriteSettings()
		f.WriteGoAway(0, http2.ErrCodeNo, nil)
		io.Copy(io.Discard, c)
	})
	r, err := load.Run(context.Background(), load.Options{Engine: load.Epoll, Protocol: load.HTTP2, Connections: 2, Requests: 10,
		Timeout: time.Minute, Targets: []load.Target{{URL: "http://" + addr}}})
	if r == nil || err == nil || r.Counts.Reset != 10 || accepted() > 20 {
		t.Errorf("got %+v on %d connections and error %v, want all 10 reset after two connections each at most", r, accepted(), err)
	}
}

// A connection on which nothing comes any more gives way to another.
func TestHTTP2LostPeer(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	addr, accepted := speaking(t, func(f *http2.Framer, s uint32, before int64) bool {
		if before == 5 {
			<-over // nobody reads this connection any more
		}
		answer200(f, s)
		return true
	})
	r, err := load.Run(context.Background(), load.Options{Engine: load.Epoll, Protocol: load.HTTP2, Connections: 1, Requests: 30,
		Timeout: 500 * time.Millisecond, Targets: []load.Target{{URL: "http://" + addr}}})
	if err != nil || r.Counts.Timeout < 1 || r.Counts.Status[2] < 20 || accepted() < 2 {
		t.Errorf("got %+v on %d connections and %v, want one or so timed out and the others answered on another connection", r.Counts, accepted(), err)
	}
}

// Header fields are verified, whatever form they come in.
func TestHTTP2VerifiesFields(t *testing.T) {
	addr, _ := speaking(t, func(f *http2.Framer, s uint32, before int64) bool {
		var block strings.Builder
		e := hpack.NewEncoder(&block)
		e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
		e.WriteField(hpack.HeaderField{Name: "x-n", Value: strings.Repeat("x", int(before%2)), Sensitive: true})
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: true})
		return true
	})
	r := run(t, context.Background(), load.Options{Engine: load.Epoll, Protocol: load.HTTP2, Connections: 1, Requests: 20,
		Targets: []load.Target{{URL: "http://" + addr, Verify: load.Verify{Header: []load.Field{{Name: "X-N", Value: "x"}}}}}})
	if r.Counts.Status[2] != 20 || r.Counts.Unverified != 10 {
		t.Errorf("got %+v, want 20 answers, every other one as asked", r.Counts)
	}
}
