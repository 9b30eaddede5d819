package main

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	netpprof "net/http/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// TestAccount asks a service, which is this process, who spends what, and holds
// the sum of all owners against what the kernel counted meanwhile: within 3 %,
// though the service's profiler misses a fifth.
func TestAccount(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		for n := 0; ; {
			select {
			case <-done:
				return
			default:
				n = burn(n)
			}
		}
	}()
	var off float64
	for range 3 { // should the machine stall
		s := &short{}
		server := httptest.NewServer(s)
		bill := account(t, server.URL)
		server.Close()
		want := s.used.Seconds() / s.took.Seconds() * 1e9 // ns a second
		off = bill.CPU/want - 1
		if math.Abs(off) > 0.03 {
			t.Logf("owners' CPU is %.0f ms a second, the kernel counted %.0f", bill.CPU/1e6, want/1e6)
			continue
		}
		return
	}
	t.Errorf("owners' CPU is off by %+.1f %%, want at most 3 %%", 100*off)
}

// account is the bill of a service.
func account(t *testing.T, url string) *cost.Bill {
	t.Helper()
	var out, errs bytes.Buffer
	args := []string{"cost", "--for", "2s", "--json", url}
	if status := run(t.Context(), args, &cli.Terminal{Out: &out, Err: &errs, Width: 80}); status != 0 {
		t.Fatalf("tare %v: exit status %d\n%s", args, status, errs.String())
	}
	var bill cost.Bill
	if err := json.Unmarshal(out.Bytes(), &bill); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, it := range bill.Items {
		sum += it.Self
	}
	if math.Abs(sum-bill.CPU) > bill.CPU/1e6 {
		t.Errorf("owners add up to %v ns, the bill to %v", sum, bill.CPU)
	}
	return &bill
}

// burn runs for a while.
//
//go:noinline
func burn(n int) int {
	for range 100_000 {
		n = n*31 + 7
	}
	return n
}

// short exposes profiles of this process, whose CPU profile stands for four fifths
// of what happened, and notes what the kernel counted while that was taken.
type short struct{ used, took time.Duration }

func (s *short) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/profile") {
		netpprof.Index(w, r)
		return
	}
	begun, before := time.Now(), ownCPU()
	taken := httptest.NewRecorder()
	netpprof.Profile(taken, r)
	s.used, s.took = ownCPU()-before, time.Since(begun)
	p, err := pprof.Read(taken.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sum := 0.0
	for _, stack := range p.Stacks {
		sum += stack.Value
	}
	p.Scale(0.8 * float64(s.used) / sum)
	p.Write(w)
}

// ownCPU is the CPU that this process has used.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
