package main

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	netpprof "net/http/pprof"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/pprof"
)

// TestSameFigures asks a service, which is this process, what it spends, by each verb,
// and compares that with what the kernel counted meanwhile: within 3 %, though the
// service's profiler misses a fifth.
func TestSameFigures(t *testing.T) {
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
	for verb, spent := range map[string]func(t *testing.T, url string) float64{
		"cost": spentByCost, "diff": spentByDiff, "doctor": spentByDoctor, "flame": spentByFlame,
	} {
		t.Run(verb, func(t *testing.T) {
			var off float64
			for range 3 { // should the machine stall
				s := &short{}
				server := httptest.NewServer(s)
				got := spent(t, server.URL)
				server.Close()
				want := s.used.Seconds() / s.took.Seconds() * 1e9
				if off = got/want - 1; math.Abs(off) <= 0.03 {
					return
				}
				t.Logf("it shows %.0f ms of CPU a second, the kernel counted %.0f", got/1e6, want/1e6)
			}
			t.Errorf("CPU is off by %+.1f %%, want at most 3 %%", 100*off)
		})
	}
}

// spentByCost returns nanoseconds of CPU a second, as do those of other verbs.
func spentByCost(t *testing.T, url string) float64 {
	var bill cost.Bill
	told(t, &bill, "cost", "--for", "2s", "--json", url)
	sum := 0.0
	for _, it := range bill.Items {
		sum += it.Self
	}
	if math.Abs(sum-bill.CPU) > bill.CPU/1e6 {
		t.Errorf("owners add up to %v ns, the bill to %v", sum, bill.CPU)
	}
	return bill.CPU
}

func spentByDiff(t *testing.T, url string) float64 {
	other := filepath.Join(t.TempDir(), "other.pb.gz")
	var b bytes.Buffer
	if err := pprof.New(pprof.CPU, time.Second, []cost.Stack{{Frames: []cost.Frame{{Func: "main.work"}}, Count: 90, Value: 9e8}}).Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var d struct {
		CPU diff.Result `json:"cpu"`
	}
	told(t, &d, "diff", "--for", "2s", "--repeat", "1", "--json", url, other)
	return d.CPU.Total.A
}

func spentByDoctor(t *testing.T, url string) float64 {
	saved := filepath.Join(t.TempDir(), "evidence.gz")
	if status, _, said := tare(t, "doctor", "--for", "2s", "--save", saved, url); status == cli.ExitFailed || status == cli.ExitUsage {
		t.Fatalf("exit status %d: %s", status, said)
	}
	f, err := os.Open(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := doctor.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return cost.NewBill(e.CPU, nil, e.Window).CPU
}

func spentByFlame(t *testing.T, url string) float64 {
	const seconds = 2
	drawn := filepath.Join(t.TempDir(), "it.folded")
	if status, _, said := tare(t, "flame", "--for", fmt.Sprintf("%ds", seconds), "-o", drawn, url); status != 0 {
		t.Fatalf("exit status %d: %s", status, said)
	}
	text, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum / seconds
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
