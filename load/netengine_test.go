package load_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// protocols are the ways in which the goroutine engine talks to a server.
var protocols = []struct {
	name     string
	protocol load.Protocol
	tls      bool
}{
	{"http1", load.HTTP1, false},
	{"https1", load.HTTP1, true},
	{"h2c", load.HTTP2, false},
	{"h2", load.HTTP2, true},
}

// serve starts a server for the i-th of protocols and returns what to offer it
// load with.
func serve(t *testing.T, i int, h http.Handler) (load.Options, *httptest.Server) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetHTTP2(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.ErrorLog = quiet()
	s.EnableHTTP2 = true
	p := protocols[i]
	o := load.Options{Engine: load.Goroutines, Protocol: p.protocol, Timeout: 10 * time.Second}
	if p.tls {
		s.StartTLS()
		o.TLS = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	o.Targets = []load.Target{{URL: s.URL}}
	return o, s
}

// run runs o and checks what holds of every result.
func run(t *testing.T, ctx context.Context, o load.Options) *load.Result {
	t.Helper()
	r, err := load.Run(ctx, o)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	checkSums(t, r)
	return r
}

func checkSums(t *testing.T, r *load.Result) {
	t.Helper()
	for name, c := range map[string]load.Counts{"measured": r.Counts, "warm-up": r.WarmUp} {
		if sum := c.Answered() + c.Failed() + c.Dropped; sum != c.Scheduled {
			t.Errorf("%s: the ends sum to %d of %d scheduled: %+v", name, sum, c.Scheduled, c)
		}
	}
	var ended uint64
	for _, s := range r.Series {
		ended += s.Answered + s.Failed + s.Dropped
	}
	if ended != r.Counts.Scheduled {
		t.Errorf("the series sums to %d of %d scheduled", ended, r.Counts.Scheduled)
	}
	if n := r.Response.Count(); n != r.Counts.Answered() {
		t.Errorf("%d response times of %d answers", n, r.Counts.Answered())
	}
}

func TestProtocols(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			var seen, wrong atomic.Uint64
			o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen.Add(1)
				body, _ := io.ReadAll(r.Body)
				major := 1
				if p.protocol == load.HTTP2 {
					major = 2
				}
				if r.ProtoMajor != major || r.Method != "POST" || r.URL.RequestURI() != "/a%2Fb?c=%20d" ||
					string(body) != "hello" || r.Header.Get("X-Test") != "yes" || r.UserAgent() != "tare" {
					wrong.Add(1)
				}
				w.Header().Set("X-Answer", "42")
				fmt.Fprint(w, strings.Repeat("an answer ", 5000))
			}))
			o.Targets[0] = load.Target{Method: "POST", URL: o.Targets[0].URL + "/a%2Fb?c= d", Body: []byte("hello"),
				Header: []load.Field{{Name: "X-Test", Value: "yes"}},
				Verify: load.Verify{Status: 200, Contains: "answer an", Length: new(int64), Header: []load.Field{{Name: "X-Answer", Value: "42"}}}}
			*o.Targets[0].Verify.Length = 50_000
			o.Connections, o.Requests = 3, 200
			r := run(t, context.Background(), o)
			if r.Counts.Scheduled != 200 || r.Counts.Status[2] != 200 || r.Counts.Unverified != 0 {
				t.Errorf("got %+v, want 200 verified answers of class 2", r.Counts)
			}
			if seen.Load() != 200 || wrong.Load() != 0 {
				t.Errorf("the server saw %d requests, %d of them wrong; want 200 and 0", seen.Load(), wrong.Load())
			}
			if r.Opened != 3 || r.Reused != 197 {
				t.Errorf("got %d connections opened and %d requests on used ones, want 3 and 197", r.Opened, r.Reused)
			}
			if r.BytesIn < 200*50_000 || r.BytesOut < 200*5 {
				t.Errorf("got %d bytes in and %d out, want at least the bodies", r.BytesIn, r.BytesOut)
			}
			if r.FirstByte.Count() != 200 || r.FirstByte.Max() > r.Service.Max() {
				t.Errorf("first byte: got %d times up to %d ns, service up to %d ns", r.FirstByte.Count(), r.FirstByte.Max(), r.Service.Max())
			}
			if p.tls && r.Full+r.Resumed != 3 || !p.tls && r.Full+r.Resumed != 0 {
				t.Errorf("got %d full and %d resumed handshakes on 3 connections", r.Full, r.Resumed)
			}
		})
	}
}

func TestUnverified(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.NotFoundHandler())
			o.Requests, o.Targets[0].Verify.Contains = 10, "something else"
			r := run(t, context.Background(), o)
			if r.Counts.Status[4] != 10 || r.Counts.Unverified != 10 {
				t.Errorf("got %+v, want 10 answers of class 4, none verified", r.Counts)
			}
		})
	}
}

func TestOpenLoop(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			var seen atomic.Uint64
			o, _ := serve(t, i, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
			o.Schedule, o.Duration, o.WarmUp = pace.Constant(500), 400*time.Millisecond, 100*time.Millisecond
			r := run(t, context.Background(), o)
			if r.Counts.Scheduled != 200 || r.WarmUp.Scheduled != 50 {
				t.Errorf("got %d requests measured and %d in the warm-up, want 200 and 50", r.Counts.Scheduled, r.WarmUp.Scheduled)
			}
			if got := r.Counts.Status[2] + r.WarmUp.Status[2]; got != seen.Load() || got != 250 {
				t.Errorf("got %d answers, the server saw %d; want 250", got, seen.Load())
			}
			if r.Lag.Count() != 200 {
				t.Errorf("got %d lags, want 200", r.Lag.Count())
			}
		})
	}
}

// A request that waits for a connection waits in its response time.
func TestOpenLoopBacklog(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) }))
			o.Schedule, o.Duration = pace.Constant(1000), 100*time.Millisecond
			o.Connections, o.Streams = 1, 1
			r := run(t, context.Background(), o)
			if r.Counts.Status[2] != 100 || r.Opened != 1 {
				t.Errorf("got %+v on %d connections, want 100 answers on 1", r.Counts, r.Opened)
			}
			// The last began at 99 ms and ended after 100 answers of 5 ms.
			if got := time.Duration(r.Response.Max()); got < 380*time.Millisecond {
				t.Errorf("got a longest response time of %v, want 400ms or more", got)
			}
			if got := time.Duration(r.Service.Quantile(0.5)); got > 200*time.Millisecond {
				t.Errorf("got a median service time of %v, want about 5ms", got)
			}
			o.MaxInFlight = 10
			r = run(t, context.Background(), o)
			if r.Counts.Dropped == 0 || r.PeakFlight > 11 {
				t.Errorf("with 10 in flight: got %d dropped, %d in flight at the peak", r.Counts.Dropped, r.PeakFlight)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	var at, peak atomic.Int64
	o, _ := serve(t, 2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := at.Add(1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		time.Sleep(time.Millisecond)
		at.Add(-1)
	}))
	o.Connections, o.Streams, o.Requests = 2, 8, 400
	r := run(t, context.Background(), o)
	if r.Opened != 2 || r.Counts.Status[2] != 400 {
		t.Errorf("got %d answers on %d connections, want 400 on 2", r.Counts.Status[2], r.Opened)
	}
	if p := peak.Load(); p <= 2 || p > 16 {
		t.Errorf("the server had %d requests at once, want more than the 2 connections and at most 16", p)
	}
}

func TestNewConnections(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			o.Connections, o.Requests, o.NewConnections = 2, 100, 1
			r := run(t, context.Background(), o)
			if r.Opened != 100 || r.Reused != 0 || r.Counts.Status[2] != 100 {
				t.Errorf("none reused: got %d opened, %d reused, %+v", r.Opened, r.Reused, r.Counts)
			}
			if p.tls && r.Resumed < 90 {
				t.Errorf("got %d full and %d resumed handshakes, want most resumed", r.Full, r.Resumed)
			}
			o.NoResume, o.NewConnections = true, 0.5
			r = run(t, context.Background(), o)
			if r.Opened < 25 || r.Opened > 77 || r.Opened+r.Reused != 100 {
				t.Errorf("half reused: got %d opened, %d reused", r.Opened, r.Reused)
			}
			if p.tls && (r.Resumed != 0 || r.Full != r.Opened) {
				t.Errorf("no resumption: got %d full and %d resumed handshakes of %d", r.Full, r.Resumed, r.Opened)
			}
		})
	}
}

func TestUnixAndWeights(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var a, b atomic.Uint64
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Host {
		case "a.example":
			a.Add(1)
		case "b.example":
			b.Add(1)
		}
	})}
	go s.Serve(l)
	defer s.Close()
	o := load.Options{Engine: load.Goroutines, Unix: path, Requests: 400, Connections: 4,
		Targets: []load.Target{{URL: "http://a.example/", Weight: 3}, {URL: "http://b.example/"}}}
	r := run(t, context.Background(), o)
	if a.Load()+b.Load() != 400 || a.Load() < 250 || a.Load() > 350 {
		t.Errorf("weights 3 and 1: the server saw %d and %d of 400", a.Load(), b.Load())
	}
	if r.Opened != 4 {
		t.Errorf("got %d connections, want 4", r.Opened)
	}
}

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
			o := load.Options{Engine: load.Goroutines, Requests: 6, Connections: 2, Timeout: 150 * time.Millisecond,
				Targets: []load.Target{{URL: "http://" + addr}}}
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
	t.Run("not HTTP/2", func(t *testing.T) {
		addr, _ := hostile(t, func(c net.Conn) {
			c.Read(make([]byte, 1024))
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		})
		r, err := load.Run(context.Background(), load.Options{Protocol: load.HTTP2, Requests: 3, Connections: 1, Timeout: 2 * time.Second,
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
		r, err := load.Run(context.Background(), load.Options{Protocol: load.HTTP2, Requests: 2, Connections: 1,
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
			}
		}))
		base := o.Targets[0].URL
		o.Requests, o.Timeout = 4, 300*time.Millisecond
		for path, kind := range map[string]func(load.Counts) uint64{
			"/before": func(c load.Counts) uint64 { return c.Reset },
			"/within": func(c load.Counts) uint64 { return c.Short },
			"/hang":   func(c load.Counts) uint64 { return c.Timeout },
		} {
			o.Targets[0].URL = base + path
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
		{"plain", strings.Replace(plain.URL, "http:", "https:", 1), nil, "", "does not speak TLS on this port; use http://"},
	}
	for _, tt := range tests {
		r, err := load.Run(context.Background(), load.Options{Engine: load.Goroutines, Requests: 2, Connections: 1, TLS: tt.tls, Unix: tt.unix,
			Targets: []load.Target{{URL: tt.url}}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v\nwant one with %q", tt.name, err, tt.want)
		}
		if r == nil || r.Counts.Refused != 2 {
			t.Errorf("%s: got %+v, want 2 refused", tt.name, r)
		}
	}
}

// A target that dies and returns is survived; every request is accounted for.
func TestTargetReturns(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	first := &http.Server{Handler: h}
	go first.Serve(l)
	back := make(chan *http.Server, 1)
	go func() {
		time.Sleep(150 * time.Millisecond)
		first.Close()
		time.Sleep(150 * time.Millisecond)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			back <- nil
			return
		}
		s := &http.Server{Handler: h}
		back <- s
		s.Serve(l)
	}()
	r := run(t, context.Background(), load.Options{Engine: load.Goroutines, Schedule: pace.Constant(500), Duration: 600 * time.Millisecond,
		Slice: 50 * time.Millisecond, Targets: []load.Target{{URL: "http://" + addr}}})
	s := <-back
	if s == nil {
		t.Skip("the port was taken meanwhile")
	}
	defer s.Close()
	if r.Counts.Refused == 0 || r.Series[0].Answered == 0 || r.Series[len(r.Series)-1].Answered == 0 {
		t.Errorf("got %+v, series %+v; want answers, refusals, answers", r.Counts, r.Series)
	}
}

func TestInterrupt(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/hang" {
					<-r.Context().Done()
				}
			}))
			o.Targets = append(o.Targets, load.Target{URL: o.Targets[0].URL + "/hang"})
			o.Targets[0].Weight = 20
			o.Schedule, o.Duration, o.Connections, o.Streams = pace.Constant(500), time.Minute, 2, 1
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			started := time.Now()
			r, err := load.Run(ctx, o)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
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
}

// TestExchangeAllocates holds a request over a kept connection to no
// allocation, TLS excepted.
func TestExchangeAllocates(t *testing.T) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	addr, _ := hostile(t, func(c net.Conn) {
		buf := make([]byte, 1024)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			c.Write(answer)
		}
	})
	o := load.Options{Engine: load.Goroutines, Connections: 2, Targets: []load.Target{{URL: "http://" + addr}}}
	mallocs := func(requests int64) uint64 {
		o.Requests = requests
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(t, context.Background(), o)
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	mallocs(100) // whatever is made once
	few, many := mallocs(100), mallocs(5100)
	if got := (float64(many) - float64(few)) / 5000; got > 0.05 {
		t.Errorf("got %.2f allocations a request, want none", got)
	}
}

// An answer that comes before the request has been read is an answer.
func TestEarlyAnswer(t *testing.T) {
	addr, _ := hostile(t, func(c net.Conn) {
		c.Read(make([]byte, 1024))
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
	})
	o := load.Options{Engine: load.Goroutines, Requests: 3, Connections: 1,
		Targets: []load.Target{{Method: "POST", URL: "http://" + addr, Body: make([]byte, 1<<20)}}}
	if r := run(t, context.Background(), o); r.Counts.Status[4] != 3 {
		t.Errorf("got %+v, want 3 answers of class 4", r.Counts)
	}
}

// A server that asks for a connection's end still answers what is in flight.
func TestGoAway(t *testing.T) {
	o, _ := serve(t, 2, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(2 * time.Millisecond)
		w.Header().Set("Connection", "close") // net/http makes it a GOAWAY
	}))
	o.Connections, o.Streams, o.Requests = 1, 4, 40
	r, err := load.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, r)
	if r.Counts.Answered()+r.Counts.Reset != 40 || r.Counts.Answered() < 20 || r.Opened < 2 {
		t.Errorf("got %+v on %d connections, want nearly all answered on several", r.Counts, r.Opened)
	}
}
