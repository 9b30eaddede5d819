package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What keeps a service from being profiled is told apart: only one that answered,
// and without a profile, is advised to expose it.
func TestUnprofiled(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		hint   string
	}{
		{errors.New("answered 404 Not Found"), exitCould, "net/http/pprof"},
		{fmt.Errorf("asking: %w", syscall.ECONNREFUSED), exitCould, "nothing listens there"},
		{fmt.Errorf("asking: %w", &net.DNSError{Err: "no such host", Name: "nodir"}), exitCould, "no machine of that name"},
		{fmt.Errorf("asking: %w", context.Canceled), exitInterrupted, "--pid N keeps"},
	} {
		got := unprofiled(tt.err)
		if got.status != tt.status || !strings.Contains(got.hint, tt.hint) {
			t.Errorf("%v: got status %d and hint %q, want %d and %q", tt.err, got.status, got.hint, tt.status, tt.hint)
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
		if status != exitInterrupted {
			t.Fatalf("got exit status %d, want %d\n%s%s", status, exitInterrupted, out, said)
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
	status = run(ctx, []string{"trace", "--no-samples", "--for", "60s", s.URL}, &terminal{out: &stdout, err: &stderr, width: 80})
	return status, stdout.String(), stderr.String()
}
