package load_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// TestHostileMix lets a server do its worst at random. Whatever it does, every
// request has one end, and none is sent twice.
func TestHostileMix(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	answers := []string{
		ok, ok, ok, // mostly it behaves
		"HTTP/1.1 100 Continue\r\n\r\n" + ok,
		"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
		ok + "surplus",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\n\r\nuntil the end",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshort",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
		"HTTP/1.1 200 OK\r\nContent-Length: 9",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\nx",
		"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nx",
		"garbage\r\n\r\n", "\x00", "",
	}
	serve := func(c net.Conn, seen *atomic.Uint64) {
		rng := rand.New(rand.NewPCG(1, seen.Load()))
		buf := make([]byte, 4096)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			seen.Add(1)
			answer := answers[rng.IntN(len(answers))]
			switch rng.IntN(8) {
			case 0:
				for i := range len(answer) { // drip
					io.WriteString(c, answer[i:i+1])
				}
			default:
				io.WriteString(c, answer)
			}
			switch rng.IntN(12) {
			case 0:
				return
			case 1:
				c.(*net.TCPConn).SetLinger(0)
				return
			case 2:
				c.Read(buf) // hang, until the other side has enough
				return
			}
		}
	}
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		for _, schedule := range []*pace.Schedule{nil, pace.Poisson(2000, 1)} {
			var seen atomic.Uint64
			addr, accepted := hostile(t, func(c net.Conn) { serve(c, &seen) })
			r := run(t, context.Background(), load.Options{
				Engine: engine, Schedule: schedule, Connections: 8, Requests: 1500, Timeout: 20 * time.Millisecond,
				Targets: []load.Target{{URL: "http://" + addr, Verify: load.Verify{Contains: "ok"}}},
			})
			c := r.Counts
			if c.Scheduled != 1500 || c.Status[2] == 0 || c.Status[4] == 0 || c.Short == 0 || c.Malformed == 0 || c.Timeout == 0 || c.Reset == 0 {
				t.Errorf("got %+v, want 1500 requests with every kind of end", c)
			}
			// The server reads a request in one piece, so it sees each once,
			// and one that it does not see ended in a reset or time-out, or was dropped.
			if n := seen.Load(); n > c.Scheduled || n+c.Reset+c.Timeout+c.Dropped < c.Scheduled {
				t.Errorf("the server saw %d requests, the result is %+v", n, c)
			}
			// What timed out may have been connected on one side only.
			if got := accepted(); got > r.Opened+c.Timeout || got+c.Timeout < r.Opened {
				t.Errorf("the server accepted %d connections, the result has %d and %d time-outs", got, r.Opened, c.Timeout)
			}
		}
	})
}

// In flight and response times are taken apart and must agree, N = X·R, but for
// what a worker loses between looking at the clock and taking the lock.
func TestLittle(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { time.Sleep(time.Millisecond) }))
			for _, schedule := range []*pace.Schedule{nil, pace.Constant(500)} {
				o.Schedule, o.Connections, o.Requests, o.WarmUp = schedule, 4, 100, 20*time.Millisecond
				r := run(t, context.Background(), o)
				sum := r.Response.Mean() * float64(r.Response.Count())
				area := r.MeanFlight * float64(r.Elapsed)
				if math.Abs(sum-area) > 0.1*sum {
					t.Errorf("schedule %v: the response times sum to %.0f ns, the requests in flight to %.0f ns", schedule, sum, area)
				}
				if r.PeakFlight < 1 || float64(r.PeakFlight) < r.MeanFlight {
					t.Errorf("schedule %v: got a peak of %d and a mean of %.2f in flight", schedule, r.PeakFlight, r.MeanFlight)
				}
			}
		})
	}
}

// Little's law holds of answers that come behind the end, one long after the others.
func TestLittleBehindTheEnd(t *testing.T) {
	const n = 32
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			var there atomic.Int64
			all := make(chan struct{})
			o, _ := serve(t, i, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				first := false
				switch there.Add(1) {
				case 1:
					first = true
				case n:
					close(all)
				}
				select {
				case <-all:
				case <-r.Context().Done():
				}
				if first {
					time.Sleep(300 * time.Millisecond)
				}
			}))
			o.Schedule, o.Duration = pace.Constant(1000), n*time.Millisecond
			r := run(t, context.Background(), o)
			sum, area := r.Response.Mean()*float64(r.Response.Count()), r.MeanFlight*float64(r.Elapsed)
			if r.Counts.Status[2] != n || math.Abs(sum-area) > 0.1*sum {
				t.Errorf("got %+v, response times that sum to %.0f ns and requests in flight to %.0f ns", r.Counts, sum, area)
			}
		})
	}
}

// A request that hangs when all have begun is not in flight for longer than the
// run lasts.
func TestInFlightWhileOneHangs(t *testing.T) {
	atOnce(t, func(t *testing.T, i int) {
		for timeout := 3 * time.Second; ; timeout *= 2 { // longer if the machine is busy
			var n atomic.Int64
			o, _ := serve(t, i, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if n.Add(1) == 1 {
					<-r.Context().Done()
				}
			}))
			o.Requests, o.Connections, o.Timeout = 20, 2, timeout
			r := run(t, context.Background(), o)
			if r.Counts.Timeout > 1 && timeout < 20*time.Second {
				continue
			}
			if r.Counts.Timeout != 1 || r.MeanFlight <= 0 || r.MeanFlight > float64(o.Connections) {
				t.Errorf("got %+v and a mean of %.2f in flight, want one time-out and more than 0 and at most %d", r.Counts, r.MeanFlight, o.Connections)
			}
			return
		}
	})
}

// What is asked for in vain is part of a run that a number of requests ends: the
// rate is not that of the time before the server hung.
func TestAnswersEndFirst(t *testing.T) {
	const answered, asked = 4, 12
	for i, p := range protocols {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/open=%v", p.name, open), func(t *testing.T) {
				t.Parallel()
				for timeout := 50 * time.Millisecond; ; timeout *= 2 { // longer if the machine is busy
					var n atomic.Int64
					o, _ := serve(t, i, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						if n.Add(1) > answered {
							<-r.Context().Done()
						}
					}))
					o.Connections, o.Requests, o.Timeout = 1, asked, timeout
					least := (asked - answered - 1) * timeout // until the last request begins
					if open {
						o.Schedule, o.Connections, least = pace.Constant(40), asked, (asked-1)*time.Second/40
					}
					r, err := load.Run(context.Background(), o)
					if r != nil && r.Counts.Answered() == 0 && timeout < 10*time.Second {
						continue // as of a server that hangs from the start, which is an error
					}
					if err != nil {
						t.Fatal(err)
					}
					checkSums(t, r)
					if r.Counts.Scheduled != asked || r.Counts.Answered() > answered || r.Elapsed < least {
						t.Errorf("got %+v in %v, want %d requests, not more than %d answers, and %v or more", r.Counts, r.Elapsed, asked, answered, least)
					}
					if r.MeanFlight > float64(r.PeakFlight) {
						t.Errorf("got a mean of %.2f in flight and a peak of %d", r.MeanFlight, r.PeakFlight)
					}
					return
				}
			})
		}
	}
}

// A schedule is not followed further than the requests go.
func TestRequestsEndASchedule(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			o.Schedule, o.Requests = pace.Constant(0.05), 1
			begun := time.Now()
			r := run(t, context.Background(), o)
			if took := time.Since(begun); r.Counts.Status[2] != 1 || took > 10*time.Second {
				t.Errorf("got %+v within %v, want one answer, and no wait for the second start after 20 s", r.Counts, took)
			}
		})
	}
}

// What is in flight at the end has its time-out. Where a request has none, neither has
// the last of so many; a time that was planned is kept to.
func TestPatience(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		timeout, planned, want time.Duration
		ends                   bool
	}{{0, 0, 30 * s, true}, {2 * s, 0, 2 * s, true}, {2 * s, time.Hour, 2 * s, true}, {-1, 0, 0, false}, {-1, time.Hour, time.Hour + 30*s, true}} {
		got, ends, err := load.Patience(load.Options{Requests: 3, Timeout: tt.timeout, Duration: tt.planned,
			Targets: []load.Target{{URL: "http://127.0.0.1"}}})
		if err != nil || ends != tt.ends || ends && (got > tt.want || got < tt.want-s) {
			t.Errorf("time-out %v, planned %v: got %v, ends %t (%v); want %v, %t", tt.timeout, tt.planned, got, ends, err, tt.want, tt.ends)
		}
	}
}

// TestMark checks that warm-up and measured part are distinguished, and that
// connections are open as long as the marks say.
func TestMark(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		for _, warmUp := range []bool{false, true} {
			d := 100 * time.Millisecond
			for !marks(t, engine, warmUp, d) { // on a busy machine nothing happens for a while
				if d *= 4; d > time.Minute {
					t.Fatalf("no requests in %v", d/4)
				}
			}
		}
	})
}

// marks checks a run of length d, and reports false if there were no requests
// in a part of it.
func marks(t *testing.T, engine load.Engine, warmUp bool, d time.Duration) bool {
	t.Helper()
	var seen, closed atomic.Uint64
	addr, _ := hostile(t, func(c net.Conn) {
		buf := make([]byte, 1024)
		for {
			if _, err := c.Read(buf); err != nil {
				closed.Add(1)
				return
			}
			seen.Add(1)
			io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	var told []bool
	var closedThen uint64
	var last load.Snapshot
	o := load.Options{
		Engine: engine, Duration: d, Connections: 3,
		Targets: []load.Target{{URL: "http://" + addr}},
		Mark: func(begin bool) {
			told = append(told, begin)
			closedThen = closed.Load()
		},
		Progress: func(s load.Snapshot) { last = s },
	}
	if warmUp {
		o.WarmUp = d
	}
	r, err := load.Run(context.Background(), o)
	if r == nil {
		t.Fatal(err)
	}
	checkSums(t, r)
	if len(told) != 2 || !told[0] || told[1] {
		t.Errorf("warm-up of %v: got marks %v, want true, false", o.WarmUp, told)
	}
	if closedThen != 0 {
		t.Errorf("warm-up of %v: %d connections were closed before the second mark", o.WarmUp, closedThen)
	}
	if got := r.Counts.Scheduled + r.WarmUp.Scheduled; got != seen.Load() {
		t.Errorf("warm-up of %v: got %d and %d requests, the server saw %d", o.WarmUp, r.WarmUp.Scheduled, r.Counts.Scheduled, seen.Load())
	}
	if last.Counts.Scheduled > r.Counts.Scheduled+r.WarmUp.Scheduled {
		t.Errorf("warm-up of %v: progress told of %d requests of %d", o.WarmUp, last.Counts.Scheduled, r.Counts.Scheduled+r.WarmUp.Scheduled)
	}
	if !warmUp && r.WarmUp.Scheduled > 0 {
		t.Errorf("got %d requests in no warm-up", r.WarmUp.Scheduled)
	}
	return r.Counts.Answered() > 0 && (!warmUp || r.WarmUp.Answered() > 0)
}

func TestProgress(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer s.Close()
		var snaps []load.Snapshot
		var counts []uint64
		r := run(t, context.Background(), load.Options{
			Engine: engine, Schedule: pace.Constant(200), Duration: 700 * time.Millisecond, Connections: 4,
			Targets:  []load.Target{{URL: s.URL}},
			Progress: func(s load.Snapshot) { snaps = append(snaps, s); counts = append(counts, s.Response.Count()) },
		})
		if len(snaps) == 0 {
			t.Fatal("no progress was reported")
		}
		for i, s := range snaps {
			if s.Total != 700*time.Millisecond || s.Counts.Answered() != counts[i] || s.Counts.Answered() > r.Counts.Answered() || s.Flight < 0 {
				t.Errorf("snapshot %d: got %+v with %d response times", i, s, counts[i])
			}
			if i > 0 && s.Counts.Scheduled < snaps[i-1].Counts.Scheduled {
				t.Errorf("snapshot %d: %d scheduled after %d", i, s.Counts.Scheduled, snaps[i-1].Counts.Scheduled)
			}
		}
	})
}

// Bodies larger than what is read at once are verified as they come, and
// requests larger than what a socket takes are sent whole.
func TestLargeBodies(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 3<<20/16)
	sum := sha256.Sum256([]byte(body))
	length := int64(len(body))
	want := load.Verify{Status: 200, Contains: "f0", Length: &length, SHA256: hex.EncodeToString(sum[:])}
	n := uint64(12)
	if raceEnabled { // each takes ten times as long
		n = 4
	}
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/length" {
					w.Header().Set("Content-Length", fmt.Sprint(length))
				}
				io.Copy(w, r.Body)
			}))
			url := o.Targets[0].URL
			o.Connections, o.Requests = 2, int64(n)
			for _, path := range []string{"/chunked", "/length"} {
				o.Targets = []load.Target{{Method: "POST", URL: url + path, Body: []byte(body), Verify: want}}
				o.MaxAnswer = 0
				if r := run(t, context.Background(), o); r.Counts.Status[2] != n || r.Counts.Unverified != 0 {
					t.Errorf("%s: got %+v, want %d verified answers", path, r.Counts, n)
				}
				o.MaxAnswer = length - 1
				if r, err := load.Run(context.Background(), o); r == nil || r.Counts.Malformed != n {
					t.Errorf("%s, with a limit of one byte less: got %+v and error %v, want %d malformed", path, r, err, n)
				}
			}
		})
	}
}

// One connection must do for several servers: it goes where it is needed.
func TestServersShareConnections(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		var seen [2]atomic.Uint64
		o := load.Options{Engine: engine, Schedule: pace.Constant(500), Requests: 60, Connections: 1}
		for i := range seen {
			s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen[i].Add(1) }))
			defer s.Close()
			o.Targets = append(o.Targets, load.Target{URL: s.URL})
		}
		r := run(t, context.Background(), o)
		if a, b := seen[0].Load(), seen[1].Load(); r.Counts.Status[2] != 60 || a+b != 60 || a == 0 || b == 0 {
			t.Errorf("got %+v, the servers saw %d and %d, want 60 answers from both", r.Counts, a, b)
		}
	})
}

// The open loop opens no more connections than it may, to however many servers.
func TestServersBoundConnections(t *testing.T) {
	const most = 3
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		for _, share := range []float64{0, 0.5} {
			var open atomic.Int64
			o := load.Options{Engine: engine, Schedule: pace.Constant(1000), Requests: 200, Connections: most, NewConnections: share}
			for range 4 {
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) }))
				s.Config.ConnState = func(_ net.Conn, to http.ConnState) {
					switch to {
					case http.StateNew:
						open.Add(1)
					case http.StateClosed:
						open.Add(-1)
					}
				}
				s.Start()
				defer s.Close()
				o.Targets = append(o.Targets, load.Target{URL: s.URL})
			}
			left := int64(-1)
			o.Mark = func(begin bool) {
				// The servers hear of a connection's end a little later.
				for end := time.Now().Add(10 * time.Second); !begin && time.Now().Before(end); time.Sleep(time.Millisecond) {
					if left = open.Load(); left <= most {
						return
					}
				}
			}
			if r := run(t, context.Background(), o); r.Counts.Status[2] != 200 || left > most {
				t.Errorf("new connections %v: got %+v, %d connections kept open; want 200 answers and at most %d", share, r.Counts, left, most)
			}
		}
	})
}

// So it is by HTTP/2, where requests share connections and may have one of their own.
// Counted are those that carry requests at a time, as the servers see it.
func TestStreamsBoundConnections(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		const most = 4
		for _, tc := range []struct {
			share            float64
			streams, servers int
		}{{0, 1, 2}, {0.5, 0, 1}, {0.5, 4, 2}, {1, 0, 1}, {1, 8, 2}} {
			t.Run(fmt.Sprintf("new=%v,streams=%d,servers=%d", tc.share, tc.streams, tc.servers), func(t *testing.T) {
				var mu sync.Mutex
				carry, peak := map[string]int{}, 0
				o := load.Options{
					Engine: engine, Protocol: load.HTTP2, Schedule: pace.Constant(2000), Requests: 100, Timeout: time.Minute,
					Connections: most, Streams: tc.streams, NewConnections: tc.share,
				}
				for k := range tc.servers {
					s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						from := fmt.Sprint(k, r.RemoteAddr)
						mu.Lock()
						carry[from]++
						peak = max(peak, len(carry))
						mu.Unlock()
						time.Sleep(10 * time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						if carry[from]--; carry[from] == 0 {
							delete(carry, from)
						}
					}))
					s.Config.Protocols = new(http.Protocols)
					s.Config.Protocols.SetHTTP1(true)
					s.Config.Protocols.SetUnencryptedHTTP2(true)
					s.Start()
					defer s.Close()
					o.Targets = append(o.Targets, load.Target{URL: s.URL})
				}
				r := run(t, context.Background(), o)
				mu.Lock()
				defer mu.Unlock()
				if r.Counts.Status[2] != 100 || peak > most || tc.share == 0 && r.Opened > most {
					t.Errorf("got %+v, %d connections at once and %d in all; want 100 answers on at most %d at once", r.Counts, peak, r.Opened, most)
				}
			})
		}
	})
}

// A name that stands for several addresses is reached by any that answers.
func TestSeveralAddresses(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
			l, err := net.Listen("tcp", at)
			if err != nil {
				t.Logf("%s: %v", at, err)
				continue
			}
			addrs, _ := net.LookupHost("localhost")
			if !strings.Contains(fmt.Sprint(addrs), strings.Trim(strings.TrimSuffix(at, ":0"), "[]")) {
				l.Close()
				continue
			}
			s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
			go s.Serve(l)
			_, port, _ := net.SplitHostPort(l.Addr().String())
			r := run(t, context.Background(), load.Options{Engine: engine, Connections: 2, Requests: 20,
				Targets: []load.Target{{URL: "http://localhost:" + port}}})
			if r.Counts.Status[2] != 20 {
				t.Errorf("a server at %s: got %+v, want 20 answers", at, r.Counts)
			}
			s.Close()
		}
	})
}

func TestNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	for _, p := range protocols {
		if p.protocol == load.HTTP3 {
			continue // UDP refuses nothing: see TestHTTP3NothingListens
		}
		needs(t, p.engine)
		url := "http://"
		if p.tls {
			url = "https://"
		}
		r, err := load.Run(context.Background(), load.Options{Engine: p.engine, Protocol: p.protocol, Connections: 2, Requests: 4,
			Targets: []load.Target{{URL: url + addr}}})
		if r == nil || r.Counts.Refused != 4 || !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "start the server") {
			t.Errorf("%s: got %+v and error %v, want 4 refused with a remedy", p.name, r, err)
		}
		if r != nil && len(r.Warnings) == 0 {
			t.Errorf("%s: no warning of the refusals", p.name)
		}
	}
}

// A server that dies in the warm-up has answered nothing that counts.
func TestNothingAnsweredAfterWarmUp(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		var seen atomic.Int64
		addr, _ := hostile(t, func(c net.Conn) {
			if _, err := c.Read(make([]byte, 1024)); err == nil && seen.Add(1) == 1 {
				io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			}
		})
		r, err := load.Run(context.Background(), load.Options{Engine: engine, Schedule: pace.Constant(100), Connections: 1,
			WarmUp: 50 * time.Millisecond, Duration: 50 * time.Millisecond, Targets: []load.Target{{URL: "http://" + addr}}})
		if r == nil || r.WarmUp.Status[2] != 1 || r.Counts.Answered() != 0 {
			t.Fatalf("got %+v and error %v, want one answer, in the warm-up", r, err)
		}
		for _, want := range []string{"no request was answered", "closed the connection"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one with %q", err, want)
			}
		}
	})
}

func TestOptionErrors(t *testing.T) {
	ok := []load.Target{{URL: "http://localhost/"}}
	for _, tt := range []struct {
		o    load.Options
		want string
	}{
		{load.Options{}, "no target"},
		{load.Options{Targets: ok, Connections: -1}, "Connections is negative: -1"},
		{load.Options{Targets: ok, Duration: -time.Second}, "Duration is negative"},
		{load.Options{Targets: ok, Slice: time.Microsecond}, "1ms or more"},
		{load.Options{Targets: ok, Schedule: &pace.Schedule{}}, "schedule"},
		{load.Options{Targets: ok, NewConnections: 1.5}, "outside 0 to 1"},
		{load.Options{Targets: ok, Protocol: "spdy"}, `protocol "spdy" is unknown`},
		{load.Options{Targets: ok, Engine: "steam"}, `engine "steam" is unknown`},
		{load.Options{Targets: ok, Engine: load.Epoll, Protocol: load.HTTP2, Proxy: "localhost:3128"}, "use the goroutine engine"},
		{load.Options{Targets: []load.Target{{URL: "https://localhost/"}}, Proxy: "localhost:3128", Engine: load.Epoll}, "use the goroutine engine"},
		{load.Options{Targets: []load.Target{{URL: "https://localhost/"}}, TLS: &tls.Config{Renegotiation: tls.RenegotiateOnceAsClient}, Engine: load.Epoll}, "does not renegotiate"},
		{load.Options{Targets: ok, Connections: math.MaxInt}, "ulimit -n"},
		{load.Options{Targets: ok, Proxy: "socks5://ada:secret@localhost"}, `proxy "socks5://…@localhost": scheme "socks5" is not supported`},
		{load.Options{Targets: ok, Proxy: "localhost:3128", Unix: "s"}, "not reached through a proxy"},
		{load.Options{Targets: []load.Target{{URL: "https://localhost/"}}, Proxy: "localhost:3128", Protocol: load.HTTP3}, "no Unix socket or proxy"},
		{load.Options{Targets: ok, Threads: 100_000}, "100000 threads are too many"},
		{load.Options{Targets: ok, Streams: -1}, "Streams is negative"},
		{load.Options{Targets: ok, Protocol: load.HTTP2, Streams: math.MaxInt}, "streams each are too many"},
	} {
		r, err := load.Run(context.Background(), tt.o)
		if r != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got error %v, want one with %q", tt.o, err, tt.want)
		}
	}
}
