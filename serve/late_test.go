//go:build linux

package serve_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestGlimpses looks at a connection while a request comes: since when it is what is
// never told of another phase.
func TestGlimpses(t *testing.T) {
	if late := serve.Glimpses(300_000); late > 0 {
		t.Errorf("a request that has just come was taken for late %d times", late)
	}
}

// lateSweep is a server with one connection, whose requests stop at given points.
type lateSweep struct {
	*fort
	net.Conn
	br      *bufio.Reader
	settle  chan struct{} // lets /paused, which was answered, go on to the next
	entered chan struct{} // tells that /held was entered
	release chan struct{} // lets it answer
}

func openLateSweep(t *testing.T, s *serve.Server) *lateSweep {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 8<<10)), 0o666); err != nil {
		t.Fatal(err)
	}
	l := &lateSweep{settle: make(chan struct{}), entered: make(chan struct{}), release: make(chan struct{})}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/paused":
			after := r.Context().(interface{ AfterFunc(func()) func() bool })
			after.AfterFunc(func() { <-l.settle })
		case "/held", "/file":
			l.entered <- struct{}{}
			<-l.release
		}
		if r.URL.Path == "/file" {
			http.ServeFile(w, r, file)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "ok")
	})
	l.fort = fortify(t, s)
	l.Conn = l.dial()
	l.br = bufio.NewReader(l.Conn)
	return l
}

// hear reads an answer of so many bytes.
func (l *lateSweep) hear(bytes int) {
	l.t.Helper()
	res, err := http.ReadResponse(l.br, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || len(body) != bytes || res.StatusCode != http.StatusOK {
		l.t.Fatalf("got %s and %d bytes, error %v, want 200 and %d", res.Status, len(body), err, bytes)
	}
}

func (l *lateSweep) sweep(between func()) {
	l.t.Helper()
	if !serve.SweepAround(l.Server, 5*time.Hour, between) {
		l.t.Fatal("nothing was due")
	}
}

// TestLateSweep has the sweep find a connection late and go on to end it only when
// that is about its next request, or has come on: that is served.
func TestLateSweep(t *testing.T) {
	const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
	next := func(path string, bytes int) func(*testing.T, *lateSweep) {
		return func(t *testing.T, l *lateSweep) {
			say(t, l, "/paused")
			l.hear(len("ok"))
			serve.Ticked(l.Server) // all that begins after a sweep has begun is later
			l.sweep(func() {
				close(l.settle)
				say(t, l, path)
				<-l.entered
			})
			close(l.release)
			l.hear(bytes)
		}
	}
	body := func(t *testing.T, l *lateSweep) {
		io.WriteString(l, post)
		comes(t, "a wait for the body", func() bool { return serve.InBody(l.Server) })
		l.sweep(func() {
			io.WriteString(l, "hi")
			l.hear(len("ok"))
			io.WriteString(l, post)
			comes(t, "a wait for the next body", func() bool { return serve.InBody(l.Server) })
		})
		io.WriteString(l, "hi")
		l.hear(len("ok"))
	}
	hour := time.Hour
	for _, tt := range []struct {
		name string
		s    *serve.Server
		tls  bool
		talk func(*testing.T, *lateSweep)
	}{
		{"WriteTimeout", &serve.Server{WriteTimeout: hour}, false, next("/held", 2)},
		{"WriteTimeout, TLS", &serve.Server{WriteTimeout: hour}, true, next("/held", 2)},
		{"WriteTimeout, a file", &serve.Server{WriteTimeout: hour}, false, next("/file", 8<<10)},
		{"ReadTimeout", &serve.Server{ReadTimeout: hour}, false, body},
		{"StallTimeout", &serve.Server{Limits: serve.Limits{StallTimeout: hour}}, false, body},
		{"IdleTimeout", &serve.Server{IdleTimeout: hour}, false, func(t *testing.T, l *lateSweep) {
			say(t, l, "/")
			l.hear(len("ok"))
			comes(t, "idleness", func() bool { return serve.Idle(l.Server) })
			l.sweep(func() {
				say(t, l, "/held")
				<-l.entered
			})
			close(l.release)
			l.hear(len("ok"))
		}},
		{"ReadHeaderTimeout", &serve.Server{ReadHeaderTimeout: hour}, false, func(t *testing.T, l *lateSweep) {
			io.WriteString(l, "GET /held HTTP/1.1\r\n")
			comes(t, "the head's beginning", func() bool { return serve.InHead(l.Server) })
			l.sweep(func() {
				io.WriteString(l, "Host: a\r\n\r\n")
				<-l.entered
			})
			close(l.release)
			l.hear(len("ok"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.s
			if tt.tls {
				s.TLSConfig = loopbackTLS()
			}
			l := openLateSweep(t, s)
			tt.talk(t, l)
			say(t, l, "/") // and so is what comes then
			l.hear(len("ok"))
			l.quiet()
		})
	}
}

// dawdler is a connection on which ending what is written takes its time.
type dawdler struct {
	net.Conn
	ending atomic.Bool
	freed  chan struct{} // told when the deadline is taken off
}

func (d *dawdler) SetWriteDeadline(t time.Time) error {
	if t.IsZero() || time.Now().Before(t) {
		select {
		case d.freed <- struct{}{}:
		default:
		}
		return d.Conn.SetWriteDeadline(t)
	}
	d.ending.Store(true)
	select {
	case <-d.freed: // it was taken off before it was set
	case <-time.After(300 * time.Millisecond):
	}
	return d.Conn.SetWriteDeadline(t)
}

type dawdlers struct {
	net.Listener
	conns chan *dawdler
}

func (l dawdlers) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d := &dawdler{Conn: nc, freed: make(chan struct{})}
	l.conns <- d
	return d, nil
}

// TestLateWhileSettling has an answer be late and go out all the same while the sweep
// is about to end it: the next answer on the connection goes out, too.
func TestLateWhileSettling(t *testing.T) {
	for name, config := range map[string]*tls.Config{"tcp": nil, "tls": loopbackTLS()} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer noLeftovers(t)
			slow := dawdlers{l, make(chan *dawdler, 1)}
			var d *dawdler
			s := &serve.Server{WriteTimeout: 300 * time.Millisecond, TLSConfig: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "ok")
				if r.URL.Path != "/late" {
					return
				}
				http.NewResponseController(w).Flush()
				for end := time.Now().Add(long); !d.ending.Load() && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
			})}
			served := make(chan error, 1)
			go func() {
				if config != nil {
					served <- s.ServeTLS(slow, "", "")
				} else {
					served <- s.Serve(slow)
				}
			}()
			nc, err := dialer(l.Addr(), config)()
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				nc.Close()
				s.Close()
				<-served
			}()
			d = <-slow.conns
			br := bufio.NewReader(nc)
			for range 2 {
				if _, err := io.WriteString(nc, "HEAD /late HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				if _, err := http.ReadResponse(br, &http.Request{Method: http.MethodHead}); err != nil {
					t.Fatal(err)
				}
				say(t, nc, "/")
				if err := hearOK(br); err != nil {
					t.Errorf("the answer after one that was late: %v", err)
					return
				}
			}
		})
	}
}
