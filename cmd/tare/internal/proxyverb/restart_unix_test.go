//go:build unix

package proxyverb

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// TestRestart has SIGUSR2 put another process into the proxy's place, and a second tare take
// over from the first one, under requests of which none fails.
func TestRestart(t *testing.T) {
	needGo(t)
	dir, err := os.MkdirTemp("", "tare") // a socket's path has few bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") }))
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, socket := l.Addr().String(), filepath.Join(dir, "admin")
	l.Close()
	path := write(t, filepath.Join(dir, "proxy.yaml"), fmt.Sprintf("admin: %s\nlisten:\n  - address: %s\nupstreams:\n  api:\n    servers:\n      - address: %s\nroutes:\n  - path: /\n    upstream: api\n", socket, at, s.Listener.Addr()))
	launch := func(replace string) (out *output, ended chan error, end context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		out, ended = new(output), make(chan error, 1)
		go func() {
			ended <- (&Command{File: path, Replace: replace}).Run(ctx, &cli.Terminal{Out: out, Err: out})
		}()
		return out, ended, cancel
	}
	serves := func(out *output, n int) {
		t.Helper()
		for range 2400 {
			if strings.Count(out.String(), "serving "+path) == n {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("it has not begun to serve %d times:\n%s", n, out)
	}
	out, ended, _ := launch("")
	serves(out, 1)
	var sent, failed atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{}}
	for range 4 {
		all.Go(func() {
			for !over.Load() {
				sent.Add(1)
				res, err := client.Post("http://"+at, "text/plain", strings.NewReader("order"))
				if err != nil {
					failed.Add(1)
					t.Log(err)
					continue
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || string(body) != "done" {
					failed.Add(1)
					t.Logf("%d %q, %v", res.StatusCode, body, err)
				}
			}
		})
	}
	for n := range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		serves(out, 2+n)
	}
	later, laterEnded, cancel := launch(socket)
	serves(later, 1)
	over.Store(true)
	all.Wait()
	client.CloseIdleConnections()
	if failed.Load() > 0 || sent.Load() == 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
	}
	for _, ended := range []chan error{ended, laterEnded} {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("ended with %v\n%s", err, out)
			}
		case <-time.After(60 * time.Second):
			t.Fatalf("does not end:\n%s", out)
		}
		cancel() // the first one has ended by itself
	}
}
