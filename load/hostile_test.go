package load_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// TestHostileServer counts ends against what the server did.
func TestHostileServer(t *testing.T) {
	whole := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	acts := []struct {
		name   string
		answer string
		hang   bool // instead of closing
		rst    bool
		want   func(load.Counts) uint64
	}{
		{name: "close before an answer", want: func(c load.Counts) uint64 { return c.Reset }},
		{name: "reset before an answer", rst: true, want: func(c load.Counts) uint64 { return c.Reset }},
		{name: "short head", answer: whole[:20], want: func(c load.Counts) uint64 { return c.Short }},
		{name: "short body", answer: whole[:len(whole)-1], want: func(c load.Counts) uint64 { return c.Short }},
		{name: "reset in the body", answer: whole[:len(whole)-1], rst: true, want: func(c load.Counts) uint64 { return c.Short }},
		{name: "garbage", answer: "220 smtp ready\r\n", want: func(c load.Counts) uint64 { return c.Malformed }},
		{name: "hang", hang: true, want: func(c load.Counts) uint64 { return c.Timeout }},
		{name: "hang in the body", answer: whole[:len(whole)-1], hang: true, want: func(c load.Counts) uint64 { return c.Timeout }},
		{name: "until close", answer: "HTTP/1.0 200 OK\r\n\r\nall", want: func(c load.Counts) uint64 { return c.Status[2] }},
		{name: "whole, then close", answer: whole, want: func(c load.Counts) uint64 { return c.Status[2] }},
		{name: "too long", answer: "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", hang: true,
			want: func(c load.Counts) uint64 { return c.Malformed }},
	}
	for _, act := range acts {
		t.Run(act.name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, engine load.Engine) {
				addr, accepted := hostile(t, func(c net.Conn) {
					buf := make([]byte, 1024)
					c.Read(buf)
					io.WriteString(c, act.answer)
					if act.hang {
						c.Read(buf)
					}
					if act.rst {
						c.(*net.TCPConn).SetLinger(0)
					}
				})
				o := load.Options{Engine: engine, Requests: 6, Connections: 2, Targets: []load.Target{{URL: "http://" + addr}}}
				if strings.HasPrefix(act.name, "hang") {
					o.Timeout = 150 * time.Millisecond
				}
				r, err := load.Run(context.Background(), o)
				if r == nil {
					t.Fatal(err)
				}
				checkSums(t, r)
				if got := act.want(r.Counts); got == 0 || r.Counts.Scheduled != 6 {
					t.Errorf("got %+v (%v), want all 6 of the kind", r.Counts, err)
				} else if got != 6 && !(act.name == "whole, then close" && got+r.Counts.Reset == 6) {
					t.Errorf("got %d of the kind in %+v, want 6", got, r.Counts)
				}
				if got := accepted(); got > 6 {
					t.Errorf("the server saw %d connections for 6 requests", got)
				}
			})
		})
	}
}

// hostile runs handle on every connection until the test ends.
func hostile(t *testing.T, handle func(net.Conn)) (addr string, accepted func() uint64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n atomic.Uint64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			go func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(10 * time.Second))
				handle(c)
			}()
		}
	}()
	return l.Addr().String(), n.Load
}

func TestHTTP2Failures(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		t.Run("not HTTP/2", func(t *testing.T) {
			addr, _ := hostile(t, func(c net.Conn) {
				c.Read(make([]byte, 1024))
				io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			})
			r, err := load.Run(context.Background(), load.Options{Engine: engine, Protocol: load.HTTP2, Requests: 3, Connections: 1, Timeout: 2 * time.Second,
				Targets: []load.Target{{URL: "http://" + addr}}})
			if err == nil || r == nil || r.Counts.Malformed+r.Counts.Reset != 3 {
				t.Errorf("got %+v, %v; want 3 malformed", r, err)
			}
		})
		t.Run("no ALPN", func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.Config.ErrorLog = quiet()
			s.StartTLS()
			defer s.Close()
			r, err := load.Run(context.Background(), load.Options{Engine: engine, Protocol: load.HTTP2, Requests: 2, Connections: 1,
				TLS: &tls.Config{InsecureSkipVerify: true}, Targets: []load.Target{{URL: s.URL}}})
			if err == nil || !strings.Contains(err.Error(), "does not offer the protocol asked for") || r.Counts.Refused != 2 {
				t.Errorf("got %+v, error %v; want 2 refused and a remedy", r, err)
			}
		})
		t.Run("streams reset", func(t *testing.T) {
			o, _ := serve(t, 3, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/before":
					panic(http.ErrAbortHandler)
				case "/within":
					io.WriteString(w, "part")
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				case "/hang":
					<-r.Context().Done()
				case "/status":
					w.WriteHeader(999) // net/http's client takes it
				}
			}))
			base := o.Targets[0].URL
			o.Engine, o.Requests = engine, 4
			for path, kind := range map[string]func(load.Counts) uint64{
				"/before": func(c load.Counts) uint64 { return c.Reset },
				"/within": func(c load.Counts) uint64 { return c.Short },
				"/hang":   func(c load.Counts) uint64 { return c.Timeout },
				"/status": func(c load.Counts) uint64 { return c.Malformed },
			} {
				o.Targets[0].URL, o.Timeout = base+path, time.Minute
				if path == "/hang" {
					o.Timeout = 300 * time.Millisecond
				}
				r, err := load.Run(context.Background(), o)
				if r == nil {
					t.Fatal(err)
				}
				checkSums(t, r)
				if kind(r.Counts) != 4 {
					t.Errorf("%s: got %+v, want all 4 of the kind", path, r.Counts)
				}
			}
		})
	})
}

func TestClearErrors(t *testing.T) {
	expired := httptest.NewUnstartedServer(http.NotFoundHandler())
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, "127.0.0.1", time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour))}}
	expired.Config.ErrorLog = quiet()
	expired.StartTLS()
	defer expired.Close()
	pool := x509.NewCertPool()
	pool.AddCert(expired.Certificate())
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, "other.example", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))}}
	other.Config.ErrorLog = quiet()
	other.StartTLS()
	defer other.Close()
	otherPool := x509.NewCertPool()
	otherPool.AddCert(other.Certificate())
	unknown := httptest.NewUnstartedServer(http.NotFoundHandler())
	unknown.Config.ErrorLog = quiet()
	unknown.StartTLS()
	defer unknown.Close()
	silent, _ := hostile(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	deaf, _ := hostile(t, func(net.Conn) {})
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()

	tests := []struct {
		name string
		url  string
		tls  *tls.Config
		unix string
		want string
	}{
		{"refused", "http://" + l.Addr().String(), nil, "", "connection refused: nothing listens there; start the server or check the port"},
		{"no socket", "http://h/", nil, "/no/such/socket", "no socket has that path"},
		{"expired", expired.URL, &tls.Config{RootCAs: pool}, "", "the certificate expired on "},
		{"unknown authority", unknown.URL, nil, "", "give the certificate of the authority"},
		{"wrong name", other.URL, &tls.Config{RootCAs: otherPool}, "", `the certificate is not for "127.0.0.1"`},
		{"silent", "https://" + silent, nil, "", "did not shake hands within the time-out"},
		{"hung up", "https://" + deaf, nil, "", "securing the connection to " + deaf},
		{"plain", strings.Replace(plain.URL, "http:", "https:", 1), nil, "", "does not speak TLS on this port; use http://"},
	}
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		for _, tt := range tests {
			o := load.Options{Engine: engine, Requests: 2, Connections: 1, TLS: tt.tls, Unix: tt.unix, Targets: []load.Target{{URL: tt.url}}}
			if tt.name == "silent" { // the others end by themselves, on a busy machine when it comes to it
				o.Timeout = time.Second
			}
			r, err := load.Run(context.Background(), o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got error %v\nwant one with %q", tt.name, err, tt.want)
			}
			if r == nil || r.Counts.Refused+r.Counts.Timeout != 2 {
				t.Errorf("%s: got %+v, want 2 without a connection", tt.name, r)
			}
		}
	})
}

// A target that dies and returns is survived; every request is accounted for.
func TestTargetReturns(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		var handled atomic.Uint64
		first := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled.Add(1) })}
		second := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		go first.Serve(l)
		defer second.Close()
		ctx, cancel := context.WithCancel(t.Context())
		const slice = 50 * time.Millisecond
		counts, taken := make(chan load.Counts), false
		until := func(seen func(load.Counts) bool) {
			for c := range counts {
				if seen(c) {
					time.Sleep(slice) // what comes next is in another slice
					return
				}
			}
		}
		var steps sync.WaitGroup
		steps.Go(func() {
			defer cancel()
			until(func(c load.Counts) bool { return c.Answered() > 0 })
			first.Close()
			until(func(c load.Counts) bool { return c.Refused > 0 })
			l, err := net.Listen("tcp", addr)
			if taken = err != nil; taken {
				return
			}
			go second.Serve(l)
			until(func(c load.Counts) bool { return c.Answered() > handled.Load() })
		})
		r := run(t, ctx, load.Options{Engine: engine, Schedule: pace.Constant(500), Duration: time.Minute, Slice: slice,
			Targets: []load.Target{{URL: "http://" + addr}},
			Progress: func(s load.Snapshot) {
				select {
				case counts <- s.Counts:
				case <-ctx.Done():
				}
			}})
		close(counts)
		steps.Wait()
		if taken {
			t.Skip("the port was taken meanwhile")
		}
		died := slices.IndexFunc(r.Series, func(s load.Slice) bool { return s.Failed > 0 })
		before, after := false, false
		for i, s := range r.Series {
			before = before || s.Answered > 0 && i < died
			after = after || s.Answered > 0 && i > died
		}
		if r.Counts.Refused == 0 || !before || !after {
			t.Errorf("got %+v, series %+v; want answers, refusals, answers", r.Counts, r.Series)
		}
	})
}

func TestInterrupt(t *testing.T) {
	atOnce(t, func(t *testing.T, i int) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var hung atomic.Int64
		o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hang" {
				hung.Add(1)
				<-r.Context().Done()
			}
		}))
		o.Targets = append(o.Targets, load.Target{URL: o.Targets[0].URL + "/hang"})
		o.Targets[0].Weight = 20
		o.Schedule, o.Duration, o.Connections, o.Streams = pace.Constant(500), time.Minute, 2, 1
		waited := 0
		o.Progress = func(load.Snapshot) { // requests wait once both connections hang
			if hung.Load() == 2 {
				waited++
			}
			if waited == 2 {
				cancel()
			}
		}
		started := time.Now()
		r, err := load.Run(ctx, o)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		checkSums(t, r)
		if took := time.Since(started); r.Ended == "" || took > 30*time.Second {
			t.Errorf("after %v: got Ended %q and %+v", took, r.Ended, r.Counts)
		}
		if r.Counts.Timeout == 0 || r.Counts.Dropped == 0 {
			t.Errorf("got %+v, want the hanging ones timed out and the waiting ones dropped", r.Counts)
		}
	})
}

// A run that is over and only waits for its last answer has not ended early.
func TestInterruptAfterTheEnd(t *testing.T) {
	atOnce(t, func(t *testing.T, i int) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		o, _ := serve(t, i, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ctx.Done() }))
		o.Duration, o.Connections = 50*time.Millisecond, 1
		o.Progress = func(s load.Snapshot) {
			if s.Elapsed > o.Duration {
				cancel()
			}
		}
		if r := run(t, ctx, o); r.Ended != "" || r.Counts.Answered() != 1 {
			t.Errorf("got Ended %q, %+v; want a whole run of one answer", r.Ended, r.Counts)
		}
	})
}

// One whose last requests were given up for an interruption has: they did not time out.
func TestInterruptGivesUpTheLast(t *testing.T) {
	atOnce(t, func(t *testing.T, i int) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		o, _ := serve(t, i, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		o.Duration, o.Connections = 50*time.Millisecond, 1
		o.Progress = func(s load.Snapshot) {
			if s.Elapsed > o.Duration {
				cancel()
			}
		}
		if r := run(t, ctx, o); r.Ended != "interrupted" || r.Counts.Timeout != 1 {
			t.Errorf("got Ended %q, %+v; want an interrupted run of one request without an answer", r.Ended, r.Counts)
		}
	})
}

// The closed loop does not ask as fast as a machine can refuse.
func TestRefusedRests(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		r, _ := load.Run(context.Background(), load.Options{Engine: engine, Duration: 300 * time.Millisecond, Connections: 2,
			Targets: []load.Target{{URL: "http://" + l.Addr().String()}}})
		if r == nil || r.Counts.Refused == 0 || r.Counts.Scheduled > 60 {
			t.Errorf("got %+v, want some refused and not more than 30 for each connection", r)
		}
	})
}

// What comes behind an answer is no answer to the next request: that goes out on
// another connection.
func TestBytesBehindAnswer(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		addr, accepted := hostile(t, func(c net.Conn) {
			buf := make([]byte, 1024)
			for {
				if _, err := c.Read(buf); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n")
			}
		})
		r := run(t, context.Background(), load.Options{Engine: engine, Requests: 5, Connections: 1, Targets: []load.Target{{URL: "http://" + addr}}})
		if r.Counts.Status[2] != 5 || r.Reused != 0 || accepted() != 5 {
			t.Errorf("got %+v, %d on connections used before, the server saw %d; want 5 answers on 5", r.Counts, r.Reused, accepted())
		}
	})
}

// A connection that the server closes between two requests costs neither.
func TestClosedWhileIdle(t *testing.T) {
	for i, p := range protocols {
		if p.protocol != load.HTTP1 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			for d := 250 * time.Millisecond; ; d *= 2 { // between two requests; longer if the machine is busy
				began := time.Now()
				var asked atomic.Int64
				late := make(chan bool, 3) // for each: whether the next request may have begun before the end
				o, s := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					c, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					n := time.Duration(asked.Add(1))
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					time.Sleep((n - 1) * 20 * time.Millisecond) // the first at once
					c.Close()
					late <- time.Since(began) >= n*d
				}))
				o.Schedule, o.Duration = pace.Constant(1/d.Seconds()), 3*d
				r := run(t, context.Background(), o)
				s.Close()
				disturbed := false
				for range asked.Load() {
					disturbed = <-late || disturbed
				}
				if disturbed && d < 8*time.Second {
					continue
				}
				if r.Counts.Status[2] != 3 || r.Opened != 3 {
					t.Errorf("got %+v on %d connections, want 3 answers on 3", r.Counts, r.Opened)
				}
				return
			}
		})
	}
}

// An answer that comes before the request has been read is an answer.
func TestEarlyAnswer(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		addr, _ := hostile(t, func(c net.Conn) {
			c.Read(make([]byte, 1024))
			io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
		})
		o := load.Options{Engine: engine, Requests: 3, Connections: 1,
			Targets: []load.Target{{Method: "POST", URL: "http://" + addr, Body: make([]byte, 1<<20)}}}
		if r := run(t, context.Background(), o); r.Counts.Status[4] != 3 {
			t.Errorf("got %+v, want 3 answers of class 4", r.Counts)
		}
	})
}

// A server that asks for a connection's end still answers what is in flight.
func TestGoAway(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		o, _ := serve(t, 2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Millisecond)
			w.Header().Set("Connection", "close") // net/http makes it a GOAWAY
		}))
		o.Engine, o.Connections, o.Streams, o.Requests = engine, 1, 4, 40
		r, err := load.Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, r)
		// A stream that crosses the GOAWAY on its way is refused: a reset, told as one.
		if r.Counts.Answered()+r.Counts.Reset != 40 || r.Counts.Answered() < 20 || r.Opened < 10 {
			t.Errorf("got %+v on %d connections, want nearly all answered on 10 or more", r.Counts, r.Opened)
		}
	})
}

// A request that waits for a stream of a connection that ends has not been sent: it goes
// out on the next, however many end before its turn comes.
func TestGoAwayBeforeSent(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		addr, accepted := hostile(t, leaving)
		r := run(t, context.Background(), load.Options{Engine: engine, Protocol: load.HTTP2, Connections: 1, Streams: 30, Requests: 600,
			Timeout: time.Minute, Targets: []load.Target{{URL: "http://" + addr}}})
		if r.Counts.Status[2] != 600 {
			t.Errorf("got %+v on %d connections, warnings %q; want all 600 answered", r.Counts, accepted(), r.Warnings)
		}
	})
}

// leaving speaks HTTP/2 on a connection that allows one stream at a time and is to end
// with the first, and answers all the same what comes on it.
func leaving(c net.Conn) {
	f := http2.NewFramer(c, c)
	f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	var status strings.Builder
	hpack.NewEncoder(&status).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	for left := false; ; {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		if h, ok := frame.(*http2.HeadersFrame); ok {
			if !left {
				left = true
				f.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
				time.Sleep(time.Millisecond)
			}
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: []byte(status.String()), EndHeaders: true, EndStream: true})
		}
	}
}
