//go:build linux

package serve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestIdleTimeoutWithoutPoller has connections idle that cannot be parked: they are
// closed in time all the same.
func TestIdleTimeoutWithoutPoller(t *testing.T) {
	l := openLounge(t, 1, &serve.Server{IdleTimeout: 1500 * time.Millisecond})
	serve.NoPoller(l.Server)
	comes(t, "the idle time-out", func() bool { return l.ended.Load() == 1 })
	l.quiet()
}

// TestCloseLeavesHijacked hijacks a connection while Close goes about closing others:
// it is the handler's.
func TestCloseLeavesHijacked(t *testing.T) {
	closing, goOn := make(chan struct{}), make(chan struct{})
	handling, hijack := make(chan struct{}), make(chan struct{})
	hijacked := make(chan net.Conn, 1)
	var parked atomic.Value
	f := fortify(t, &serve.Server{
		ConnState: func(nc net.Conn, s http.ConnState) {
			if s == http.StateNew {
				parked.CompareAndSwap(nil, nc)
			}
			if s == http.StateClosed && parked.Load() == nc {
				close(closing)
				<-goOn
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/hijack" {
				stateHandler(w, r)
				return
			}
			close(handling)
			<-hijack
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			hijacked <- nc
		}),
	})
	answeredOnce(t, f.dial())
	comes(t, "the connection to be parked", func() bool { return connGoroutines() == 0 })
	nc := f.dial()
	say(t, nc, "/hijack")
	<-handling
	closed := make(chan error, 1)
	go func() { closed <- f.Close() }()
	<-closing // of the one that was parked, while the other is next
	close(hijack)
	ours := <-hijacked
	defer ours.Close()
	close(goOn)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(ours, "mine"); err != nil {
		t.Errorf("writing on the hijacked connection after Close: %v", err)
	}
	if got, err := io.ReadAll(io.LimitReader(nc, 4)); string(got) != "mine" {
		t.Errorf("got %q, %v, on the hijacked connection after Close", got, err)
	}
}

// TestCloseWhileParking closes servers just as their connection is parked: it is told
// to be closed all the same.
func TestCloseWhileParking(t *testing.T) {
	defer noLeftovers(t)
	waits := func(in string) func() bool {
		return func() bool {
			return slices.ContainsFunc(stacks(), func(stack string) bool { return strings.Contains(stack, "serve.(*parking)."+in+"(") })
		}
	}
	for range 20 {
		s := &serve.Server{IdleTimeout: -1, Limits: serve.Limits{ShutdownGrace: 1000 * time.Hour}} // nothing but Close ends it
		l := openLounge(t, 1, s)
		comes(t, "idleness", func() bool { return serve.Idle(s) })
		goOn := serve.ParkingStopped(s)
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		comes(t, "Close to look whether it is parked", waits("end"))
		comes(t, "it to be parked", func() bool {
			serve.ParkSoon(s)
			return waits("hold")()
		})
		goOn()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		comes(t, "the connection's end", func() bool { return l.ended.Load() == 1 })
	}
}

// parting is a connection that is looked at as the server says farewell on it.
type parting struct {
	*net.TCPConn
	look func()
}

func (p *parting) CloseWrite() error {
	p.look()
	return p.TCPConn.CloseWrite()
}

type partings struct {
	net.Listener
	look func()
}

func (l partings) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &parting{nc.(*net.TCPConn), l.look}, nil
}

// TestRefusedHasItsTime refuses a head that took nearly all of its time: the client is
// given the time to read why.
func TestRefusedHasItsTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer noLeftovers(t)
	s := &serve.Server{MaxHeaderBytes: 2 << 10, ReadHeaderTimeout: time.Hour}
	due := make(chan bool, 1)
	served := goServe(s, partings{l, func() { due <- serve.SweepAround(s, 2*time.Hour, func() {}) }})
	defer func() {
		s.Close()
		<-served
	}()
	nc := call(t, l.Addr().String())
	io.WriteString(nc, "GET / HTTP/1.1\r\n")
	comes(t, "the head's beginning", func() bool { return serve.InHead(s) })
	io.WriteString(nc, "A: "+strings.Repeat("b", 4<<10))
	if res, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %v, %v, want 431", res, err)
	}
	if <-due {
		t.Error("the farewell was to be cut short by the time for a head")
	}
}

// TestPanicWithReader has handlers panic and leave a goroutine behind that reads the
// body, which does not come: the connection ends at once.
func TestPanicWithReader(t *testing.T) {
	for name, config := range map[string]*tls.Config{"tcp": nil, "tls": loopbackTLS()} {
		t.Run(name, func(t *testing.T) {
			s := &serve.Server{TLSConfig: config, Limits: serve.Limits{StallTimeout: -1}}
			read := make(chan error, 1)
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				go func() {
					_, err := io.ReadAll(r.Body)
					read <- err
				}()
				for end := time.Now().Add(long); !serve.InBody(s) && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
				panic(http.ErrAbortHandler)
			})
			nc := fortify(t, s).dial()
			io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
			closed(t, nc)
			nc.Close()
			if err := <-read; err == nil {
				t.Error("the body was read without an error")
			}
		})
	}
}

// TestAfterPanic uses what a handler has left behind that panicked: the request's context
// has ended, and its body and the answer's writer say so.
func TestAfterPanic(t *testing.T) {
	type left struct {
		w http.ResponseWriter
		r *http.Request
	}
	kept, ended := make(chan left, 1), make(chan struct{})
	f := fortify(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept <- left{w, r}
		panic(http.ErrAbortHandler)
	}), ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			close(ended)
		}
	}})
	io.WriteString(f.dial(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
	was := <-kept
	<-ended
	if err := was.r.Context().Err(); err != context.Canceled {
		t.Errorf("the context's error is %v, want %v", err, context.Canceled)
	}
	if _, err := was.r.Body.Read(make([]byte, 5)); err != http.ErrBodyReadAfterClose {
		t.Errorf("reading the body: error %v, want %v", err, http.ErrBodyReadAfterClose)
	}
	if _, err := io.WriteString(was.w, "late"); err == nil {
		t.Error("the answer was written, want an error")
	}
}

// TestShutdownAfterMuted shuts a server down whose connections were not kept before: a
// new connection is given its grace from then on, however long Shutdown takes to begin.
func TestShutdownAfterMuted(t *testing.T) {
	const grace = time.Second
	f := fortify(t, &serve.Server{Handler: http.HandlerFunc(stateHandler), Limits: serve.Limits{ShutdownGrace: grace}})
	answeredOnce(t, f.dial())
	nc := f.dial()
	f.SetKeepAlivesEnabled(false)
	time.Sleep(2 * grace)
	goOn := serve.Stopped(f.Server)
	done := make(chan error, 1)
	go func() { done <- f.Shutdown(context.Background()) }()
	if !open(nc) {
		t.Error("the connection was closed before Shutdown could begin")
	}
	time.Sleep(200 * time.Millisecond)
	goOn()
	time.Sleep(grace / 4) // several ticks of the clock
	say(t, nc, "/")
	told(t, nc)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestShedBeforeRequest has a request come on a connection that is about to be closed in
// favour of another: no handler may see it, since its answer would be lost.
func TestShedBeforeRequest(t *testing.T) {
	for name, begin := range map[string]string{"idle": "", "in a head": "GET / HTTP/1.1\r\n"} {
		t.Run(name, func(t *testing.T) {
			var handled atomic.Int32
			f := fortify(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handled.Add(1)
				io.WriteString(w, "ok")
			})})
			nc := f.dial()
			answeredOnce(t, nc)
			comes(t, "idleness", func() bool { return serve.Idle(f.Server) })
			if begin != "" {
				io.WriteString(nc, begin)
				comes(t, "the head's beginning", func() bool { return serve.InHead(f.Server) })
			}
			serve.ShedAround(f.Server, func() {
				io.WriteString(nc, strings.TrimPrefix("GET / HTTP/1.1\r\nHost: a\r\n\r\n", begin))
				time.Sleep(100 * time.Millisecond)
			})
			closed(t, nc)
			if n := handled.Load(); n != 1 {
				t.Errorf("%d requests were handled, want none after the first", n-1)
			}
		})
	}
}
