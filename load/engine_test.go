package load_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
	"github.com/tarehq/tare/internal/sockets"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
)

// protocols are the ways in which the engines talk to a server.
var protocols = []struct {
	name     string
	engine   load.Engine
	protocol load.Protocol
	tls      bool
}{
	{"http1", load.Goroutines, load.HTTP1, false},
	{"https1", load.Goroutines, load.HTTP1, true},
	{"h2c", load.Goroutines, load.HTTP2, false},
	{"h2", load.Goroutines, load.HTTP2, true},
	{"epoll", load.Epoll, load.HTTP1, false},
	{"h3", load.Goroutines, load.HTTP3, true},
	{"epoll-https", load.Epoll, load.HTTP1, true},
	{"epoll-h2c", load.Epoll, load.HTTP2, false},
	{"epoll-h2", load.Epoll, load.HTTP2, true},
}

// atOnce runs f with every protocol, by its index, at once: for tests that wait more than
// they work.
func atOnce(t *testing.T, f func(t *testing.T, i int)) {
	var all sync.WaitGroup
	for i, p := range protocols {
		all.Go(func() { t.Run(p.name, func(t *testing.T) { f(t, i) }) })
	}
	all.Wait()
}

// eachEngine runs f with both engines for HTTP/1.1.
func eachEngine(t *testing.T, f func(*testing.T, load.Engine)) {
	for _, e := range []load.Engine{load.Goroutines, load.Epoll} {
		t.Run("engine="+string(e), func(t *testing.T) {
			needs(t, e)
			f(t, e)
		})
	}
}

// The open loop's answers end when they arrive, the closed loop's when they are
// read.
func TestUnread(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
			for _, open := range []bool{false, true} {
				o.Schedule, o.Connections, o.Requests = nil, 1, 200
				if open {
					o.Schedule, o.Connections = pace.Constant(500), 0
				}
				stamped := open && p.engine == load.Epoll
				r := run(t, context.Background(), o)
				for stamped && r.Unread.Count() < uint64(o.Requests/2) && o.Requests < 5000 { // longer if the machine is busy: the kernel begins to stamp when it has the time
					o.Requests *= 2
					r = run(t, context.Background(), o)
				}
				if n, all := r.Unread.Count(), uint64(o.Requests); stamped && n < all/2 || !stamped && n != 0 || n > all {
					t.Errorf("open %v: the arrival of %d answers of %d is known; all but the first if stamped (%v), else none", open, n, all, stamped)
				}
			}
		})
	}
}

// What fails behind the last answer is in the series too.
func TestFailsLast(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		var n atomic.Int64
		o, _ := serve(t, 0, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 5 {
				<-r.Context().Done()
			}
		}))
		o.Engine, o.Requests, o.Connections, o.Timeout, o.Slice = engine, 10, 2, time.Second, 300*time.Millisecond
		if r := run(t, context.Background(), o); r.Counts.Timeout != 1 {
			t.Errorf("got %+v, want one of 10 timed out", r.Counts)
		}
	})
}

// needs skips the test where there is no such engine.
func needs(t *testing.T, e load.Engine) {
	t.Helper()
	if e == load.Epoll && runtime.GOOS != "linux" {
		t.Skip("epoll is Linux's")
	}
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
	needs(t, p.engine)
	o := load.Options{Engine: p.engine, Protocol: p.protocol, Timeout: time.Minute} // the machine may be busy
	if p.tls {
		s.StartTLS()
		o.TLS = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	if p.protocol == load.HTTP3 {
		serveHTTP3(t, s, h)
	}
	o.Targets = []load.Target{{URL: s.URL}}
	return o, s
}

// serveHTTP3 serves h on the UDP port of s's number.
func serveHTTP3(t *testing.T, s *httptest.Server, h http.Handler) {
	t.Helper()
	socket, err := net.ListenPacket("udp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server := &http3.Server{Handler: h, TLSConfig: http3.ConfigureTLSConfig(s.TLS)}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(socket) })
	t.Cleanup(func() {
		server.Close()
		socket.Close()
		serving.Wait()
	})
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
	for name, h := range map[string]*hist.Hist{"response": r.Response, "service": r.Service, "first-byte": r.FirstByte} {
		if n := h.Count(); n != r.Counts.Answered() {
			t.Errorf("%d %s times of %d answers", n, name, r.Counts.Answered())
		}
	}
}

func TestProtocols(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			var seen, wrong atomic.Uint64
			o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen.Add(1)
				body, _ := io.ReadAll(r.Body)
				major := map[load.Protocol]int{load.HTTP1: 1, load.HTTP2: 2, load.HTTP3: 3}[p.protocol]
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

// A path goes out as it was given, if it begins like a host too.
func TestPathOfTwoSlashes(t *testing.T) {
	f := feeder(t, "paths.csv", "path\nb\n")
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			var got atomic.Value
			o, _ := serve(t, i, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(r.RequestURI) }))
			base := o.Targets[0].URL
			o.Requests, o.Connections, o.Feeder = 1, 1, f
			for _, host := range []string{"", "else.example"} {
				for _, path := range []string{"//a//{{.path}}?c=//d", "//", "//a:b"} {
					o.Targets = []load.Target{{URL: base + path}}
					if host != "" {
						o.Targets[0].Header = []load.Field{{Name: "Host", Value: host}}
					}
					r := run(t, context.Background(), o)
					if want := strings.Replace(path, "{{.path}}", "b", 1); got.Load() != want || r.Counts.Status[2]+r.Counts.Status[3] != 1 {
						t.Errorf("host %q: the server saw %v of %+v, want %q", host, got.Load(), r.Counts, want)
					}
				}
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
			if len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0].Error(), "every answer is an error: 10 4xx, such as 404 Not Found") {
				t.Errorf("got warnings %v, want one that nothing succeeded", r.Warnings)
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
			o.Connections = 8 // on a busy machine as many as may be are opened, and handshakes take their time
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
			if r.Late.Count() != 200 || r.Late.Max() > r.Lag.Max() {
				t.Errorf("got %d of the generator's own, up to %d ns where the whole lag is up to %d", r.Late.Count(), r.Late.Max(), r.Lag.Max())
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
			if svc, resp := r.Service.Quantile(0.5), r.Response.Quantile(0.5); svc >= resp {
				t.Errorf("got a median service time of %d ns and response time of %d ns, want the wait in the second only", svc, resp)
			}
			o.MaxInFlight = 10
			r = run(t, context.Background(), o)
			if r.Counts.Dropped == 0 || r.PeakFlight > 10 {
				t.Errorf("with 10 in flight: got %d dropped, %d in flight at the peak", r.Counts.Dropped, r.PeakFlight)
			}
		})
	}
}

// Of requests that are due while none is answered just so many are in flight as may
// be; the others are dropped and counted, and the server does not see them.
func TestMaxInFlight(t *testing.T) {
	const most, due = 3, 20
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			var seen atomic.Int64
			over := make(chan struct{}) // all have been due
			o, _ := serve(t, i, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1); <-over }))
			o.Schedule, o.Duration, o.MaxInFlight = pace.Constant(1000), due*time.Millisecond, most
			var once sync.Once
			o.Progress = func(s load.Snapshot) {
				if s.Counts.Scheduled == due {
					once.Do(func() { close(over) })
				}
			}
			r := run(t, context.Background(), o)
			if r.PeakFlight != most || r.Counts.Answered() != most || r.Counts.Dropped != due-most || seen.Load() != most {
				t.Errorf("got %d in flight at the peak, %d answered, %d dropped, %d seen by the server; want %d, %[5]d, %d, %[5]d",
					r.PeakFlight, r.Counts.Answered(), r.Counts.Dropped, seen.Load(), most, due-most)
			}
		})
	}
}

// A request's time-out counts from its start: what it waited before for a free
// connection is in its response time and takes nothing from it.
func TestTimeoutCountsFromStart(t *testing.T) {
	atOnce(t, func(t *testing.T, i int) {
		for timeout := 2500 * time.Millisecond; ; timeout *= 2 { // longer if the machine is busy
			r := oneAfterAnother(t, i, timeout)
			if r.Counts.Timeout > 0 && timeout < 30*time.Second {
				continue
			}
			if r.Counts.Status[2] != 2 || time.Duration(r.Response.Max()) < timeout {
				t.Errorf("got %+v, the last after %v; want 2 answers, the last later than the time-out of %v",
					r.Counts, time.Duration(r.Response.Max()), timeout)
			}
			return
		}
	})
}

// oneAfterAnother has two requests be due at once on one connection, of which each takes
// three fifths of the time-out.
func oneAfterAnother(t *testing.T, i int, timeout time.Duration) *load.Result {
	t.Helper()
	two, none := pace.Phase{From: 1000, To: 1000, For: 2 * time.Millisecond}, pace.Phase{For: 2 * timeout}
	o, _ := serve(t, i, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(timeout * 3 / 5) }))
	o.Schedule, o.Timeout = &pace.Schedule{Phases: []pace.Phase{two, none}}, timeout
	o.Connections, o.Streams = 1, 1
	return run(t, context.Background(), o)
}

func TestStreams(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		var at, peak atomic.Int64
		o, _ := serve(t, 2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			n := at.Add(1)
			for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
			}
			time.Sleep(time.Millisecond)
			at.Add(-1)
		}))
		o.Engine, o.Connections, o.Streams, o.Requests = engine, 2, 8, 400
		r := run(t, context.Background(), o)
		if r.Opened != 2 || r.Counts.Status[2] != 400 {
			t.Errorf("got %d answers on %d connections, want 400 on 2", r.Counts.Status[2], r.Opened)
		}
		if p := peak.Load(); p <= 2 || p > 16 {
			t.Errorf("the server had %d requests at once, want more than the 2 connections and at most 16", p)
		}
	})
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
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		path := sockets.Path(t)
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
		o := load.Options{Engine: engine, Unix: path, Requests: 400, Connections: 4,
			Targets: []load.Target{{URL: "http://a.example/", Weight: 3}, {URL: "http://b.example/"}}}
		r := run(t, context.Background(), o)
		if a.Load()+b.Load() != 400 || a.Load() < 250 || a.Load() > 350 {
			t.Errorf("weights 3 and 1: the server saw %d and %d of 400", a.Load(), b.Load())
		}
		if r.Opened != 4 {
			t.Errorf("got %d connections, want 4", r.Opened)
		}
	})
}

// TestExchangeAllocates holds a request over a kept connection to no
// allocation, TLS excepted.
func TestExchangeAllocates(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
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
		o := load.Options{Engine: engine, Connections: 2, Targets: []load.Target{{URL: "http://" + addr}}}
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
		// One a request would be 1; what the runtime and the four looks a second
		// allocate grows with the time that a busy machine takes.
		if got := (float64(many) - float64(few)) / 5000; got > 0.5 {
			t.Errorf("got %.2f allocations a request, want none", got)
		}
	})
}

// The workers share the feeder's records out: each is used once a pass.
func TestFeederOnce(t *testing.T) {
	var lines strings.Builder
	lines.WriteString("id\n")
	for i := range 100 {
		fmt.Fprintf(&lines, "%d\n", i)
	}
	f := feeder(t, "ids.csv", lines.String())
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		var mu sync.Mutex
		seen := map[string]int{}
		o, _ := serve(t, 0, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			seen[r.URL.Query().Get("id")]++
		}))
		o.Engine, o.Feeder, o.Requests, o.Connections = engine, f, 300, 8
		o.Targets[0].URL += "/?id={{.id}}"
		run(t, context.Background(), o)
		mu.Lock()
		for i := range 100 {
			if n := seen[strconv.Itoa(i)]; n != 3 {
				t.Errorf("engine %q: record %d was sent %d times in 3 passes", engine, i, n)
			}
		}
		mu.Unlock()
	})
}

// What is said of one is said in the singular.
func TestWarningsCountOne(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there now
	for n, want := range map[int64]string{1: "1 of 1 request was refused", 2: "2 of 2 requests were refused"} {
		r, err := load.Run(context.Background(), load.Options{
			Requests: n, Connections: 1, Targets: []load.Target{{URL: "http://" + l.Addr().String() + "/"}},
		})
		if r == nil || err == nil {
			t.Fatalf("%d requests to nobody: got %v, %v; want a result and an error", n, r, err)
		}
		if len(r.Warnings) == 0 || !strings.HasPrefix(r.Warnings[0].Error(), want) {
			t.Errorf("got warnings %v, want one that begins with %q", r.Warnings, want)
		}
	}
}

// Every connection is kept busy, although the server answers none before all have
// asked.
func TestClosedLoopOffersAll(t *testing.T) {
	const n = 400
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		var there atomic.Int64
		all := make(chan struct{})
		o, _ := serve(t, 0, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if there.Add(1) == n {
				close(all)
			}
			select {
			case <-all:
			case <-r.Context().Done():
			}
		}))
		o.Engine, o.Connections, o.Requests, o.Threads, o.Timeout = engine, n, n, 1, 20*time.Second
		if r := run(t, context.Background(), o); r.Counts.Status[2] != n || r.PeakFlight != n {
			t.Errorf("got %+v, %d in flight at the peak; want %d answers, all in flight at once", r.Counts, r.PeakFlight, n)
		}
	})
}

// A server that does not know HTTP/2 is told of with the remedy.
func TestHTTP2ToHTTP1(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer s.Close()
		r, err := load.Run(t.Context(), load.Options{Engine: engine, Protocol: load.HTTP2, Connections: 8, Requests: 80, Targets: []load.Target{{URL: s.URL}}})
		if r == nil || err == nil || !strings.Contains(err.Error(), "use the other HTTP version") {
			t.Errorf("got %+v and error %v, want one with a remedy", r, err)
		}
	})
}

// A server that allows fewer streams than are asked for has the others wait, which is
// told; one that allows them all has none.
func TestStreamsAllowed(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		for allowed, crowded := range map[int]bool{2: true, 100: false} {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Millisecond) }))
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: allowed}
			s.Start()
			defer s.Close()
			r := run(t, context.Background(), load.Options{Engine: engine, Protocol: load.HTTP2, Connections: 1, Streams: 8, Requests: 400, Timeout: time.Minute,
				Targets: []load.Target{{URL: s.URL}}})
			told := slices.ContainsFunc(r.Warnings, func(err error) bool {
				return strings.Contains(err.Error(), fmt.Sprintf("begun without a free stream: their connection allows %d streams at a time", allowed))
			})
			if told != crowded || r.Counts.Answered() < 390 || r.Counts.Answered()+r.Counts.Reset != 400 {
				t.Errorf("%d allowed of 8: got %+v, warnings %q; want told %t and nearly all answered", allowed, r.Counts, r.Warnings, crowded)
			}
		}
	})
}

// What a worker waits for a processor is the generator's delay, no wait for a
// connection.
func TestSlowWorkers(t *testing.T) {
	const start = 50 * time.Millisecond
	o := load.Options{Engine: load.Goroutines, Targets: []load.Target{{URL: "http://127.0.0.1"}}, Schedule: pace.Constant(200), Requests: 20}
	r, _, err := load.SlowWorkers(o, start)
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, r)
	if own := time.Duration(r.Late.Max()); r.Counts.Status[2] != 20 || own < start || r.Late.Mean() != r.Lag.Mean() || r.Waited || !r.Bound {
		t.Errorf("got %+v, the generator late by %v, %v of %v on average, waited %t, bound %t; want 20 answered, late by %v and more, all of it, not waited, bound",
			r.Counts, own, time.Duration(r.Late.Mean()), time.Duration(r.Lag.Mean()), r.Waited, r.Bound, start)
	}
	o.MaxInFlight = 2
	r, workers, err := load.SlowWorkers(o, start)
	if err != nil || r.Counts.Status[2]+r.Counts.Dropped != 20 || workers != 2 {
		t.Errorf("at most 2 in flight: got %+v by %d workers, %v; want 20 answered or dropped by 2", r.Counts, workers, err)
	}
}
