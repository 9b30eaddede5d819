package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// What keeps a service from being profiled is told apart: only one that answered,
// and without a profile, is advised to expose it.
func TestUnprofiled(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		hint   string
	}{
		{errors.New("answered 404 Not Found"), cli.ExitFailed, "net/http/pprof"},
		{fmt.Errorf("asking: %w", syscall.ECONNREFUSED), cli.ExitFailed, "nothing listens there"},
		{fmt.Errorf("asking: %w", &net.DNSError{Err: "no such host", Name: "nodir"}), cli.ExitFailed, "no machine of that name"},
		{fmt.Errorf("asking: %w", &net.DNSError{Err: "no such host", Name: "testdata"}), cli.ExitFailed, "testdata is a file or folder here"},
		{fmt.Errorf("asking: %w", context.DeadlineExceeded), cli.ExitFailed, "did not answer in time"},
		{fmt.Errorf("asking: %w", io.EOF), cli.ExitFailed, "did it end"},
		{fmt.Errorf("asking: %w", io.ErrUnexpectedEOF), cli.ExitFailed, "did it end"},
		{fmt.Errorf("asking: %w", syscall.ECONNRESET), cli.ExitFailed, "did it end"},
		{fmt.Errorf("asking: %w", context.Canceled), cli.ExitInterrupted, "--pid N keeps"},
	} {
		got := unprofiled(tt.err)
		if got.Status != tt.status || !strings.Contains(got.Hint, tt.hint) {
			t.Errorf("%v: got status %d and hint %q, want %d and %q", tt.err, got.Status, got.Hint, tt.status, tt.hint)
		}
	}
}

// A trace that is interrupted is shown as far as it was there. When tare has read
// what it was sent is not known, so the wait for that grows.
func TestTraceInterrupted(t *testing.T) {
	raw, err := os.ReadFile("../../cost/exectrace/testdata/chi.trace")
	if err != nil {
		t.Fatal(err)
	}
	const shown = "interrupted: what was seen until then is shown"
	var out, said string
	for wait := 50 * time.Millisecond; wait < 10*time.Second; wait *= 3 {
		var status int
		status, out, said = interruptedTrace(t, raw, wait)
		if status != cli.ExitInterrupted {
			t.Fatalf("got exit status %d, want %d\n%s%s", status, cli.ExitInterrupted, out, said)
		}
		if strings.Contains(said, "pprof\"") {
			t.Fatalf("it is not that the service exposes nothing: %s", said)
		}
		if strings.Contains(out, shown) {
			return
		}
	}
	t.Errorf("got %q and %q, want %q", out, said, shown)
}

// interruptedTrace traces a service that sends raw and does not end, and is
// interrupted a while later.
func interruptedTrace(t *testing.T, raw []byte, wait time.Duration) (status int, out, said string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(raw)
		w.(http.Flusher).Flush()
		time.AfterFunc(wait, interrupt)
		<-r.Context().Done()
	}))
	defer s.Close()
	var stdout, stderr bytes.Buffer
	status = run(ctx, []string{"trace", "--no-samples", "--for", "60s", s.URL}, &cli.Terminal{Out: &stdout, Err: &stderr, Width: 80})
	return status, stdout.String(), stderr.String()
}

// Header fields that were asked for are sent with every request of the load.
func TestCostHeader(t *testing.T) {
	var sent, lacked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1); r.Header.Get("Authorization") != "Bearer a:b" || r.Header.Get("X-Shop") != "1" {
			lacked.Add(1)
		}
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &costCmd{URL: s.URL, Load: s.URL, Conns: 1, For: time.Second, Header: []string{"Authorization: Bearer a:b", "X-Shop: 1"}}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	under, err := c.offer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // under load, whose end is no error once anything was answered
	if _, err := under.end(cancel); err != nil {
		t.Log(err)
	}
	if sent.Load() < 2 || lacked.Load() > 0 {
		t.Errorf("of %d requests %d lacked the fields, want none", sent.Load(), lacked.Load())
	}
	for _, tt := range []costCmd{
		{URL: "host", For: time.Second, Conns: 1, Header: []string{"A: b"}},
		{URL: "host", For: time.Second, Conns: 1, Load: s.URL, Header: []string{"A b"}},
	} {
		var f *cli.Failure
		if err := tt.check(); !errors.As(err, &f) || f.Status != cli.ExitUsage {
			t.Errorf("--load %q --header %q: got %v, want a mistake", tt.Load, tt.Header, err)
		}
	}
}

// What it will cost the service is said before it is paid.
func TestCostPrice(t *testing.T) {
	for _, tt := range []struct {
		c    costCmd
		want string
	}{
		{costCmd{For: 30 * time.Second}, "expected to cost it 6 to 19 % of the CPU it uses"},
		{costCmd{For: 30 * time.Second, Waits: true}, "expected to cost it 6 to 19 % of the CPU it uses, then up to 12 % for 5s"},
		{costCmd{For: 2 * time.Second, Waits: true}, "expected to cost it 6 to 19 % of the CPU it uses, then up to 12 % for 2s"},
	} {
		if got := tt.c.price(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
