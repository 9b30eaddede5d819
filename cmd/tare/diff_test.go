package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/stats/unit"
)

// TestDiffInterrupted interrupts a service's second capture: the first is compared
// with what was saved.
func TestDiffInterrupted(t *testing.T) {
	var raw bytes.Buffer
	if err := pprof.StartCPUProfile(&raw); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < time.Second; {
		sha256.Sum256(make([]byte, 1<<16))
	}
	pprof.StopCPUProfile()
	saved := filepath.Join(t.TempDir(), "b.pb.gz")
	if err := os.WriteFile(saved, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, whole := range []int32{0, 1} {
		ctx, interrupt := context.WithCancel(t.Context())
		var asked atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !strings.HasSuffix(r.URL.Path, "/profile"):
				http.NotFound(w, r)
			case asked.Add(1) <= whole:
				w.Write(raw.Bytes())
			default:
				interrupt()
				<-r.Context().Done()
			}
		}))
		var out, errs bytes.Buffer
		status := run(ctx, []string{"diff", "--for", "1s", s.URL, saved}, &cli.Terminal{Out: &out, Err: &errs, Width: 80})
		s.Close()
		interrupt()
		said := fmt.Sprintf("interrupted after %s of A and 1 of B", unit.Plural(int(whole), "capture"))
		if status != cli.ExitInterrupted || strings.Contains(out.String(), said) != (whole > 0) {
			t.Errorf("after %d captures: status %d, %s%s\nwant %d, and what was captured, if anything", whole, status, out.String(), errs.String(), cli.ExitInterrupted)
		}
	}
}
