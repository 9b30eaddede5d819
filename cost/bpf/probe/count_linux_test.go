//go:build linux && amd64

package probe_test

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/internal/toggle"
)

// counter prepares to count a target's requests.
func counter(tb testing.TB, p *probe.Target) (*probe.Counter, probe.Price) {
	tb.Helper()
	price, err := probe.Calibrate(tb.Context())
	skip(tb, err)
	if err != nil {
		tb.Fatal(err)
	}
	if price.Count <= 0 || price.Count > price.Hit {
		tb.Errorf("got %s for a hit that counts, want something, and no more than %s for one that is timed", price.Count, price.Hit)
	}
	c, err := p.NewCounter(price)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c, price
}

// TestCounter holds the CPU of a request, by what was counted in windows, against what
// the target counted all the time.
func TestCounter(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 3, "/")
	c, _ := counter(t, p)
	read := func() (time.Duration, float64) {
		cpu, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		return cpu, s.truth(t)["spin"].Calls
	}
	cpu, calls := read()
	got, err := c.Run(t.Context(), 4*time.Second)
	used, called := read()
	if err != nil {
		t.Fatal(err)
	}
	s.alive(t)
	if got.Windows < 10 || got.During < 100*time.Millisecond || got.During > 2*time.Second || got.Requests == 0 {
		t.Fatalf("got %+v, want at least 10 windows, a tenth of the time", got)
	}
	want := float64(used-cpu) / (called - calls)
	each := float64(got.CPU) / got.Requests
	t.Logf("%.1f µs ± %.1f %% a request by %.0f in %d windows, %.1f µs by all", each/1e3, 100*got.Margin, got.Requests, got.Windows, want/1e3)
	// The interval holds it 95 times in 100; twice as wide, always.
	if off := math.Abs(each/want - 1); off > 2*got.Margin {
		t.Errorf("a request takes %.1f µs ± %.1f %% by windows, %.1f µs in truth", each/1e3, 100*got.Margin, want/1e3)
	}
}

// TestCounterEnds keeps what was counted until the context is done, or the process
// has ended, and leaves no probe behind.
func TestCounterEnds(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 2, "/")
	c, _ := counter(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	got, err := c.Run(ctx, time.Minute)
	if err != nil || got.Windows == 0 || got.Requests == 0 {
		t.Errorf("got %+v, %v, want what was counted within 4 s", got, err)
	}
	time.AfterFunc(time.Second, func() { s.proc.Kill() })
	begun := time.Now()
	if _, err := c.Run(t.Context(), time.Minute); err != nil {
		t.Errorf("got %v of a process that ended, want what was counted until then", err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s to see that the process had ended", took)
	}
}

// TestNothingToCount has a program in which no request begins.
func TestNothingToCount(t *testing.T) {
	dir := t.TempDir()
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "sleeper")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(time.Minute) }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("building a program: %v\n%s", err, out)
	}
	sleeper := exec.Command(path)
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		sleeper.Process.Kill()
		sleeper.Wait()
	}()
	p := open(t, sleeper.Process.Pid)
	if _, err := p.NewCounter(probe.Price{}); !errors.Is(err, cost.ErrNotSupported) {
		t.Errorf("got %v, want to be told that there is nothing to count", err)
	}
}

// BenchmarkCounting says what counting requests costs a process: CPU per request while
// they are counted against CPU per request while they are not, in pairs of windows of
// a second, in random order, within one process. tare cost counts a tenth of the time.
//
//	go test ./cost/bpf/probe -run - -bench Counting -benchtime 40x
func BenchmarkCounting(b *testing.B) {
	for _, path := range []string{"/", "/fast"} {
		b.Run("path="+path, func(b *testing.B) {
			s := start(b, build(b))
			p := open(b, s.pid)
			s.load(b, 3, path)
			c, price := counter(b, p)
			toggle.Compare(b, func(on bool) float64 {
				if !on {
					return alone(b, s, p)
				}
				r, err := c.Window(b.Context(), window)
				if err != nil {
					b.Fatal(err)
				}
				return float64(r.CPU) / float64(r.Requests)
			})
			b.ReportMetric(float64(price.Count.Nanoseconds()), "ns/hit")
		})
	}
}
