package serve_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// states records what ConnState is told, a connection at a time.
type states struct {
	mu   sync.Mutex
	seen []string
}

func (s *states) hook(_ net.Conn, st http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, st.String())
}

func (s *states) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, " ")
}

// ended waits for a state after which nothing comes.
func (s *states) ended(t *testing.T) string {
	t.Helper()
	eventually(t, "the last state of the connection", func() bool {
		return strings.HasSuffix(s.text(), "closed") || strings.HasSuffix(s.text(), "hijacked")
	})
	return s.text()
}

// halfSecond is the conversation in which serve tells of another state.
const halfSecond = "half a head after an answer"

// TestDiffConnState compares the states that one connection goes through.
func TestDiffConnState(t *testing.T) {
	tests := []struct {
		name    string
		handler act
		talk    func(*client)
	}{
		{halfSecond, see, func(c *client) { c.send(request("/")); c.answer("GET"); c.send("GET / HT"); c.finish() }},
		{"one request", see, func(c *client) { c.send(request("/")); c.answer("GET"); c.end() }},
		{"two and gone", see, func(c *client) {
			c.send(request("/"))
			c.answer("GET")
			c.send(request("/"))
			c.answer("GET")
			c.finish()
		}},
		{"nothing sent", see, func(c *client) { c.Close() }},
		{"half a head", see, func(c *client) { c.send("GET / HT"); c.finish() }},
		{"broken head", see, func(c *client) { c.send("BROKEN\r\n\r\n"); c.drain() }},
		{"a head that is too long at once", see, func(c *client) { c.send("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 6000) + "\r\n\r\n"); c.drain() }},
		{"a handshake to a plain port", see, func(c *client) { c.send("\x16\x03\x01\x00\x01\x01\r\n\r\n"); c.drain() }},
		{"hijacked", take(func(_ *journal, c net.Conn, _ *bufio.ReadWriter) {}), func(c *client) { c.send(request("/")); c.drain() }},
		{"panic", func(*journal, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, func(c *client) { c.send(request("/")); c.drain() }},
		{"pipelined", see, func(c *client) { c.send(request("/") + request("/")); c.answer("GET"); c.answer("GET"); c.finish() }},
		{"body", see, func(c *client) { c.send(post("hello")); c.answer("POST"); c.end() }},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel() // http.Server waits before it closes
			run := func(s side, by carriage) string {
				j, st := &journal{}, &states{}
				run := start(t, s, by, j, func(hs *http.Server) {
					hs.Handler, hs.ConnState, hs.MaxHeaderBytes = j.watch(x.handler), st.hook, 1000
				})
				c := run.dial(t)
				x.talk(c)
				got := st.ended(t)
				c.Close()
				run.stop(t)
				return got
			}
			for _, by := range []carriage{whole, encrypted} {
				want := run(control(), by)
				if x.name == halfSecond { // docs/serve.md names the difference
					if want != "new active idle closed" {
						t.Errorf("net/http: states %q, as serve's?", want)
					}
					want = "new active idle active closed"
				}
				for _, s := range sides() {
					if got := run(s, by); got != want {
						t.Errorf("%s/%s: states %q, want %q", s.name, by, got, want)
					}
				}
			}
		})
	}
}

// everySide runs f for the control and each side: what f wants is the same.
func everySide(t *testing.T, f func(*testing.T, side)) {
	t.Helper()
	for _, s := range append([]side{control()}, sides()...) {
		t.Run(s.name, func(t *testing.T) { f(t, s) })
	}
}

// gate is a handler that says when it begins and waits to be let go.
type gate struct{ begun, release chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 16), make(chan struct{})} }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.begun <- struct{}{}
	<-g.release
	io.WriteString(w, "let go")
}

// refused wants the listener closed.
func refused(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
		t.Errorf("dialling %s after shutdown: connected, want it refused", addr)
	}
}

func TestDiffShutdownIdle(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		j := &journal{}
		run := start(t, s, whole, j, func(hs *http.Server) { hs.Handler = j.watch(see) })
		idle := run.dial(t)
		idle.send(request("/"))
		idle.answer("GET")
		called := make(chan struct{})
		run.RegisterOnShutdown(func() { close(called) })
		if err := run.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v, want nil", err)
		}
		run.wait(t)
		idle.drain()
		if idle.lost != io.EOF {
			t.Errorf("idle connection ended with %v, want %v", idle.lost, io.EOF)
		}
		refused(t, run.addr)
		select {
		case <-called:
		case <-time.After(patience):
			t.Error("the function registered was not called")
		}
		if err := run.Serve(listener(t)); err != http.ErrServerClosed {
			t.Errorf("Serve after Shutdown: %v, want %v", err, http.ErrServerClosed)
		}
	})
}

func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestDiffShutdownActive(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		g := newGate()
		run := start(t, s, whole, &journal{}, func(hs *http.Server) { hs.Handler = g })
		c := run.dial(t)
		c.send(request("/"))
		<-g.begun
		down := make(chan error, 1)
		go func() { down <- run.Shutdown(t.Context()) }()
		run.wait(t)
		refused(t, run.addr)
		select {
		case err := <-down:
			t.Errorf("Shutdown returned %v while a handler ran", err)
		default:
		}
		close(g.release)
		if status, body := c.answer("GET"); status != 200 || body != "let go" {
			t.Errorf("answer %d %q, want 200 and the whole body", status, body)
		}
		if err := <-down; err != nil {
			t.Errorf("Shutdown: %v, want nil", err)
		}
		c.drain()
		if !strings.Contains(string(c.raw), "Connection: close\r\n") {
			t.Errorf("answer while shutting down\n%s\twant Connection: close", visible(string(c.raw)))
		}
	})
}

func TestDiffShutdownGivenUp(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		g := newGate()
		run := start(t, s, whole, &journal{}, func(hs *http.Server) { hs.Handler = g })
		c := run.dial(t)
		c.send(request("/"))
		<-g.begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := run.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown with a cancelled context: %v, want %v", err, context.Canceled)
		}
		if err := run.Close(); err != nil {
			t.Errorf("Close: %v, want nil", err)
		}
		c.drain()
		if c.lost == nil || len(c.raw) != 0 {
			t.Errorf("got %q and %v, want the connection closed without an answer", c.raw, c.lost)
		}
		close(g.release)
		run.wait(t)
	})
}

func TestDiffShutdownHijacked(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		taken := make(chan net.Conn, 1)
		run := start(t, s, whole, &journal{}, func(hs *http.Server) {
			hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
				}
				taken <- conn
			})
		})
		c := run.dial(t)
		c.send(request("/"))
		conn := <-taken
		if err := run.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown with a hijacked connection: %v, want nil at once", err)
		}
		run.Close()
		io.WriteString(conn, "still here")
		conn.Close()
		c.drain()
		if string(c.raw) != "still here" {
			t.Errorf("hijacked connection carried %q after Shutdown and Close, want %q", c.raw, "still here")
		}
		run.wait(t)
	})
}

func TestDiffShutdownWhileConnecting(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		run := start(t, s, whole, &journal{}, func(hs *http.Server) {
			hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "x") })
		})
		var whole, cut atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10_000 {
					conn, err := net.Dial("tcp", run.addr)
					if err != nil {
						return
					}
					conn.SetDeadline(time.Now().Add(patience))
					io.WriteString(conn, request("/", "Connection: close"))
					got, _ := io.ReadAll(conn)
					conn.Close()
					switch {
					case strings.HasSuffix(string(got), "\r\n\r\nx"):
						whole.Add(1)
					case len(got) > 0:
						cut.Add(1)
					}
				}
			})
		}
		eventually(t, "some answers", func() bool { return whole.Load() > 20 })
		if err := run.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v, want nil", err)
		}
		wg.Wait()
		run.wait(t)
		if cut.Load() != 0 {
			t.Errorf("%d answers cut short, want none", cut.Load())
		}
	})
}

func TestDiffClose(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		g := newGate()
		run := start(t, s, whole, &journal{}, func(hs *http.Server) { hs.Handler = g })
		active, fresh := run.dial(t), run.dial(t)
		active.send(request("/"))
		<-g.begun
		if err := run.Close(); err != nil {
			t.Errorf("Close: %v, want nil", err)
		}
		run.wait(t)
		for _, c := range []*client{active, fresh} {
			c.drain()
			if len(c.raw) != 0 || c.lost == nil {
				t.Errorf("got %q and %v, want the connection closed", c.raw, c.lost)
			}
		}
		close(g.release)
		refused(t, run.addr)
		if err := run.Close(); err != nil {
			t.Errorf("second Close: %v, want nil", err)
		}
	})
}

// TestDiffKeepAlivesSwitched turns keep-alives off and on while connections live.
func TestDiffKeepAlivesSwitched(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		j := &journal{}
		run := start(t, s, whole, j, func(hs *http.Server) { hs.Handler = j.watch(see) })
		idle := run.dial(t)
		idle.send(request("/"))
		idle.answer("GET")
		st := idle.pos
		run.SetKeepAlivesEnabled(false)
		idle.drain()
		if len(idle.raw) != st || idle.lost != io.EOF {
			t.Errorf("idle connection got %q and %v, want it closed", idle.raw[st:], idle.lost)
		}
		c := run.dial(t)
		c.send(request("/"))
		c.answer("GET")
		c.end()
		if !strings.Contains(string(c.raw), "Connection: close\r\n") || strings.Contains(string(c.raw), "204") {
			t.Errorf("without keep-alives got\n%s\twant one answer and the end", visible(string(c.raw)))
		}
		run.SetKeepAlivesEnabled(true)
		c = run.dial(t)
		c.send(request("/"))
		c.answer("GET")
		c.end()
		if !strings.Contains(string(c.raw), "204 No Content") {
			t.Errorf("with keep-alives again got\n%s\twant the connection kept", visible(string(c.raw)))
		}
		run.stop(t)
	})
}

// TestDiffListeners serves two listeners with one server and ends one of them.
func TestDiffListeners(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		j := &journal{}
		run := start(t, s, whole, j, func(hs *http.Server) { hs.Handler = j.watch(see) })
		second, ended := listener(t), make(chan error, 1)
		go func() { ended <- run.Serve(second) }()
		for _, addr := range []string{run.addr, second.Addr().String()} {
			c := (&running{addr: addr, by: whole}).dial(t)
			c.send(request("/", "Connection: close"))
			if status, body := c.answer("GET"); status != 200 || body != "seen" {
				t.Errorf("%s: answer %d %q, want 200 seen", addr, status, body)
			}
		}
		second.Close()
		if err := <-ended; err == nil || err == http.ErrServerClosed {
			t.Errorf("Serve of a listener closed by its owner: %v, want its error", err)
		}
		run.stop(t)
	})
}
