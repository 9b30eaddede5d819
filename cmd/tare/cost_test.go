package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

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
