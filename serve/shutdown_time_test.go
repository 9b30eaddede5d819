//go:build linux

package serve_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestShutdownOfNothing shuts down servers without connections: none waits for anything.
// The quickest of several counts, since other work on the machine takes time as well.
func TestShutdownOfNothing(t *testing.T) {
	const most = 10 * time.Millisecond // a tick takes 31 ms
	var took []time.Duration
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listens := make(chan struct{})
		s := &serve.Server{BaseContext: func(net.Listener) context.Context { close(listens); return context.Background() }}
		served := goServe(s, l)
		<-listens
		time.Sleep(5 * time.Millisecond) // most often it accepts by now
		began := time.Now()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(began))
		if err := <-served; err != http.ErrServerClosed {
			t.Errorf("Serve: %v", err)
		}
	}
	if least := slices.Min(took); least > most {
		t.Errorf("Shutdown took %v at least, want at most %v", least, most)
	}
}

// TestShutdownKeepsToContext shuts down with little time a server whose listener knows no
// deadlines and one that takes a time-out for nothing: Shutdown does not wait for them. The
// quickest of several counts here, too.
func TestShutdownKeepsToContext(t *testing.T) {
	const most = 200 * time.Millisecond
	for name, wrap := range map[string]func(net.Listener) net.Listener{
		"deaf":  func(l net.Listener) net.Listener { return stoppable{l.(*net.TCPListener), make(chan struct{})} },
		"blind": func(l net.Listener) net.Listener { return struct{ net.Listener }{l} },
	} {
		t.Run(name, func(t *testing.T) {
			took := shutDownAtOnce(t, wrap)
			for tries := 1; tries < 5 && took > most; tries++ {
				took = shutDownAtOnce(t, wrap)
			}
			if took > most {
				t.Errorf("Shutdown returned after %v, though its context had ended", took)
			}
		})
	}
}

// shutDownAtOnce returns how long Shutdown takes whose context has ended before.
func shutDownAtOnce(t *testing.T, wrap func(net.Listener) net.Listener) time.Duration {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serve.Server{Handler: http.HandlerFunc(stateHandler)}
	served := goServe(s, wrap(l))
	answeredOnce(t, call(t, l.Addr().String()))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	if err := s.Shutdown(ctx); err != context.Canceled {
		t.Errorf("Shutdown: %v, want %v", err, context.Canceled)
	}
	took := time.Since(began)
	s.Close()
	<-served
	return took
}

// TestEndWithFile ends servers whose listening socket blocks, since somebody asked its file for
// the descriptor, as who gives it to another process does: no connection has to come first.
func TestEndWithFile(t *testing.T) {
	for name, end := range map[string]func(*serve.Server) error{
		"Shutdown": func(s *serve.Server) error { return s.Shutdown(context.Background()) }, "Close": (*serve.Server).Close,
	} {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				file, err := l.(*net.TCPListener).File()
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				if early {
					file.Fd()
				}
				s := &serve.Server{Handler: http.HandlerFunc(stateHandler)}
				served := goServe(s, l)
				answeredOnce(t, call(t, l.Addr().String()))
				file.Fd() // while Accept waits
				answeredOnce(t, call(t, l.Addr().String()))
				ended := make(chan error, 1)
				go func() { ended <- end(s) }()
				select {
				case err := <-ended:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(long):
					t.Error("goes on")
					call(t, l.Addr().String()).Close() // which ends it
				}
				<-served
			})
		}
	}
}

// TestShutdownWithLittleTime shuts down a server with an idle connection by a context that
// ends long before the grace: the connection gets half of that time.
func TestShutdownWithLittleTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serve.Server{Handler: http.HandlerFunc(stateHandler), Limits: serve.Limits{ShutdownGrace: time.Hour}}
	served := goServe(s, l)
	nc := call(t, l.Addr().String())
	answeredOnce(t, nc)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v, want nil: no request was under way", err)
	}
	<-served
}

// TestShutdownByContextKey has a handler shut down the server that it finds in its
// context: that ends this one.
func TestShutdownByContextKey(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := goServe(&serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go r.Context().Value(http.ServerContextKey).(*http.Server).Shutdown(context.Background())
	})}, l)
	nc := call(t, l.Addr().String())
	say(t, nc, "/")
	if _, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	select {
	case err := <-served:
		if err != http.ErrServerClosed {
			t.Errorf("Serve: %v, want %v", err, http.ErrServerClosed)
		}
	case <-time.After(long):
		t.Error("Serve goes on")
	}
}
