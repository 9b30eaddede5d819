package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// traced is a program that the scripts trace: its requests are slow now and then.
// Only one trace and one CPU profile may run in a process at a time, so it is a
// process of its own. It prints where it listens.
func traced() {
	http.Handle("/", Greet(http.HandlerFunc(answer)))
	http.Handle("/lock", Queue(http.HandlerFunc(answer)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(l.Addr())
		err = http.Serve(l, nil)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Queue has requests pass one by one, and each hundredth sleep meanwhile.
func Queue(next http.Handler) http.Handler {
	var lock sync.Mutex
	var passed atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		if passed.Add(1)%100 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		lock.Unlock()
		next.ServeHTTP(w, r)
	})
}

// startTraced starts a program and returns where it listens and its process.
func startTraced(t testing.TB) (url, pid string) {
	t.Helper()
	cmd := exec.Command("tare-traced")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr), strconv.Itoa(cmd.Process.Pid)
}

// TestTraceNothing asks services for a trace that send nothing until it is interrupted, or
// something else: what was kept before stays.
func TestTraceNothing(t *testing.T) {
	for _, tc := range []struct {
		name, sent string
		want       int
	}{
		{"interrupted", "", cli.ExitInterrupted},
		{"interrupted within a second", "go 1.26 trace\x00\x00\x00\x01", cli.ExitInterrupted},
		{"a page", "<!doctype html>\n<title>all paths lead here</title>\n", cli.ExitFailed},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, tc.sent)
			if tc.want == cli.ExitInterrupted {
				http.NewResponseController(w).Flush()
				interrupt()
				<-r.Context().Done()
			}
		}))
		saved := filepath.Join(t.TempDir(), "slow.trace")
		if err := os.WriteFile(saved, []byte("of yesterday"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		// The URL as tare itself writes it is no file either.
		status := run(ctx, []string{"trace", "--no-samples", "--for", "1s", "--save", saved, s.URL + "/debug/pprof/"}, &cli.Terminal{Out: &out, Err: &errs, Width: 80})
		s.Close()
		interrupt()
		if status != tc.want {
			t.Errorf("%s: exit status %d, want %d: %s%s", tc.name, status, tc.want, out.String(), errs.String())
		}
		if kept, err := os.ReadFile(saved); err != nil || string(kept) != "of yesterday" {
			t.Errorf("%s: the trace of yesterday is %q now, %v", tc.name, kept, err)
		}
	}
}

// TestTraceUnanswered traces a service that no longer answers once it is loaded: that is
// what a trace is taken for.
func TestTraceUnanswered(t *testing.T) {
	taken, err := os.ReadFile(filepath.Join("..", "..", "cost", "exectrace", "testdata", "chi.trace"))
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/debug/pprof/trace"):
			w.Write(taken)
		case asked.Add(1) > 1:
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	saved := filepath.Join(t.TempDir(), "slow.trace")
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"trace", "--no-samples", "--for", "1s", "--load", s.URL + "/", "-c", "2", "--save", saved, s.URL}, &cli.Terminal{Out: &out, Err: &errs, Width: 80})
	if status != 0 || !strings.Contains(out.String(), "8 requests") || !strings.Contains(out.String(), "Warning: loading: no request was answered") {
		t.Errorf("exit status %d, want 0, the trace and a warning: %s%s", status, out.String(), errs.String())
	}
	if kept, err := os.ReadFile(saved); err != nil || !bytes.Equal(kept, taken) {
		t.Errorf("%d bytes of the trace were kept, %v, want %d", len(kept), err, len(taken))
	}
}
