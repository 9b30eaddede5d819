package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/router"
)

// keepers are the sides that promise that a handler may keep its request.
func keepers() []side {
	var all []side
	for _, s := range append([]side{control()}, sides()...) {
		if !s.reuses {
			all = append(all, s)
		}
	}
	return all
}

// TestDiffKeptRequest keeps requests beyond their handlers while others follow
// on the same connection, and wants them unchanged. The race detector sees
// what the engine still touches.
func TestDiffKeptRequest(t *testing.T) {
	const n = 50
	for _, s := range keepers() {
		t.Run(s.name, func(t *testing.T) {
			kept := make(chan *http.Request, n)
			run := start(t, s, whole, &journal{}, func(hs *http.Server) {
				hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					kept <- r
					io.Copy(w, r.Body)
				})
			})
			told := make(chan string, n)
			go func() {
				for r := range kept {
					<-r.Context().Done()
					told <- tell(r)
				}
				close(told)
			}()
			c := run.dial(t)
			var want []string
			for i := range n {
				c.send(fmt.Sprintf("POST /p%d?q=%d HTTP/1.1\r\nHost: h%d\r\nX-N: v%d\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: t%d\r\n\r\n", i, i, i, i, i))
				c.answer("POST")
				want = append(want, fmt.Sprintf("POST /p%d q=%d h%d v%d t%d /p%d?q=%d %s context canceled",
					i, i, i, i, i, i, i, c.LocalAddr()))
			}
			run.stop(t)
			close(kept)
			for i := range n {
				if got := <-told; got != want[i] {
					t.Errorf("kept request %d: got %q, want %q", i, got, want[i])
				}
			}
		})
	}
}

func tell(r *http.Request) string {
	return fmt.Sprintf("%s %s %s %s %s %s %s %s %v", r.Method, r.URL.Path, r.URL.RawQuery, r.Host,
		r.Header.Get("X-N"), r.Trailer.Get("X-T"), r.RequestURI, r.RemoteAddr, r.Context().Err())
}

// TestKeptWriter writes to an answer whose handler has returned: the next
// answer on the connection must not carry it.
func TestKeptWriter(t *testing.T) {
	for _, s := range sides() {
		if s.reuses {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			var kept http.ResponseWriter
			run := start(t, s, whole, &journal{}, func(hs *http.Server) {
				hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if kept == nil {
						kept = w
						return
					}
					kept.Header().Set("Stray", "1")
					kept.WriteHeader(500)
					if n, err := kept.Write([]byte("stray")); n != 0 || err == nil {
						t.Errorf("Write after the handler returned: %d, %v, want 0 and an error", n, err)
					}
					if err := http.NewResponseController(kept).Flush(); err == nil {
						t.Error("Flush after the handler returned: no error")
					}
					io.WriteString(w, "second")
				})
			})
			c := run.dial(t)
			c.send(request("/1"))
			c.answer("GET")
			first := c.pos
			c.send(request("/2", "Connection: close"))
			status, body := c.answer("GET")
			if status != 200 || body != "second" || strings.Contains(strings.ToLower(string(c.raw[first:])), "stray") {
				t.Errorf("second answer %d %q\n%s\twant 200 second, nothing of the first's", status, body, visible(string(c.raw)))
			}
			run.stop(t)
		})
	}
}

// TestKeptWriterOfHijacked goes on with the writer of a connection that was taken
// over, once the handler has returned.
func TestKeptWriterOfHijacked(t *testing.T) {
	for _, s := range append([]side{control()}, sides()...) {
		t.Run(s.name, func(t *testing.T) {
			over := make(chan http.ResponseWriter, 1)
			var taken net.Conn
			run := start(t, s, whole, &journal{}, func(hs *http.Server) {
				hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					nc, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
					}
					taken = nc
					over <- w
				})
			})
			c := run.dial(t)
			c.send(request("/"))
			w := <-over
			time.Sleep(20 * time.Millisecond) // most often the handler has returned
			w.Header().Set("Stray", "1")
			w.WriteHeader(500)
			if n, err := w.Write([]byte("stray")); n != 0 || err == nil {
				t.Errorf("Write: %d, %v, want 0 and an error", n, err)
			}
			taken.Close()
			run.stop(t)
		})
	}
}

// TestKeptRequestRouted hands a request on to a router after the handler returned: the
// race detector sees what the engine still reads.
func TestKeptRequestRouted(t *testing.T) {
	mux, rt := http.NewServeMux(), new(router.Router)
	for _, h := range []interface {
		http.Handler
		HandleFunc(string, func(http.ResponseWriter, *http.Request))
	}{mux, rt} {
		h.HandleFunc("/{a}", func(w http.ResponseWriter, r *http.Request) {
			if got := r.PathValue("a"); got != "p" {
				t.Errorf("got path value %q, want p", got)
			}
		})
	}
	for _, s := range keepers() {
		for _, h := range []http.Handler{mux, rt} {
			t.Run(fmt.Sprintf("%s/%T", s.name, h), func(t *testing.T) {
				var late sync.WaitGroup
				run := start(t, s, whole, &journal{}, func(hs *http.Server) {
					hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						late.Go(func() { h.ServeHTTP(httptest.NewRecorder(), r) })
					})
				})
				c := run.dial(t)
				for range 20 {
					c.send(request("/p"))
					c.answer("GET")
				}
				late.Wait()
				run.stop(t)
			})
		}
	}
}

// allocations is the mean number of allocations of one request and answer over
// a loopback connection, and their bytes, the client's among them: it makes none.
func allocations(t *testing.T, s side, req, answer string) (count, bytes float64) {
	t.Helper()
	body := []byte("hello")
	run := start(t, s, whole, &journal{}, func(hs *http.Server) {
		hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) })
	})
	defer run.stop(t)
	conn, err := net.Dial("tcp", run.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask, buf := []byte(req), make([]byte, 4<<10)
	round := func() {
		if _, err := conn.Write(ask); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(buf); err != nil || n < len(answer) || string(buf[n-len(answer):n]) != answer {
			t.Fatalf("answer %q, %v, want one that ends in %q", buf[:n], err, answer)
		}
	}
	for range 100 {
		round()
	}
	const rounds = 2000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	count = testing.AllocsPerRun(rounds, round)
	runtime.ReadMemStats(&after)
	return count, float64(after.TotalAlloc-before.TotalAlloc) / rounds
}

// TestAllocationBudget holds the figures that the package comment gives, and that a
// request's memory is no larger than its kind needs.
func TestAllocationBudget(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("X-Own-%d: 1", i)
	}
	for _, x := range []struct {
		name, send         string
		safe, reuse, bytes float64
	}{
		{"get", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 3, 0, 750},
		{"get with fields", request("/a/b?c=d", "User-Agent: x", "Accept: */*", "X-Own: 1", "Cookie: a=b"), 4, 0, 1250},
		{"get with 8 fields", request("/a/b?c=d", many[:8]...), 4, 0, 1600},
		{"get with 12 fields, as a browser's", request("/a/b?c=d", many...), 6, 0, 2100},
	} {
		for _, s := range sides() {
			t.Run(x.name+"/"+s.name, func(t *testing.T) {
				budget, room := x.safe, x.bytes
				if s.reuses {
					budget, room = x.reuse, 10
				}
				got, bytes := allocations(t, s, x.send, "hello")
				if got > budget || bytes > room {
					t.Errorf("%s: %v allocations of %.0f bytes a request, want at most %v of %v", s.name, got, bytes, budget, room)
				}
				t.Logf("%s: %v allocations of %.0f bytes a request", s.name, got, bytes)
			})
		}
	}
}

// TestNoGoroutineLeft has many kinds of connections live and die and counts
// goroutines before and after.
func TestNoGoroutineLeft(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		before := runtime.NumGoroutine()
		for _, by := range []carriage{whole, encrypted} {
			j := &journal{}
			run := start(t, s, by, j, func(hs *http.Server) {
				hs.Handler = j.watch(lively)
				hs.Protocols = protocols("1", "2", "h2c")
			})
			var left []*client
			for _, path := range []string{"/", "/panic", "/hijack", "/context", "/flush", "/idle"} {
				c := run.dial(t)
				c.send(request(path))
				if path == "/flush" || path == "/" {
					c.answer("GET")
				}
				left = append(left, c)
			}
			ask(t, run.addr, by, protocols("1", "2", "h2c"))
			for _, c := range left[:3] {
				c.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			left[3].Close()
			if err := run.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			cancel()
			run.stop(t)
			for _, c := range left {
				c.Close()
			}
			j.settle(t)
		}
		eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
		if n := runtime.NumGoroutine(); n > before {
			stacks := make([]byte, 1<<20)
			t.Errorf("%d goroutines, %d before\n%s", n, before, stacks[:runtime.Stack(stacks, true)])
		}
	})
}

// lively does, by path, one of the things that can leave something behind.
func lively(j *journal, w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/panic":
		panic(http.ErrAbortHandler)
	case "/hijack":
		take(func(*journal, net.Conn, *bufio.ReadWriter) {})(j, w, r)
	case "/context":
		gone(j, r)
	case "/flush":
		flushed("a")(j, w, r)
	}
}
