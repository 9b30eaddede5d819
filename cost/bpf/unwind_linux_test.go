//go:build linux && amd64

package bpf_test

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
)

// TestCut has the profile say whether stacks are deeper than can be followed: this
// process spins at the end of some calls.
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name  string
		calls int
		want  bool
	}{
		{"deep", 300, true},
		{"shallow", 20, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const enough = 50
			for d := time.Second / 4; ; d *= 2 {
				p := spinning(t, tt.calls, d)
				if p.Seen < enough && d < 16*time.Second {
					continue
				}
				got := false
				for _, w := range p.Warnings {
					got = got || strings.Contains(w.Error(), "are deeper than the")
				}
				if got != tt.want {
					t.Errorf("%d samples %d calls deep: the warnings are %v; want one of the depth: %t", p.Seen, tt.calls, p.Warnings, tt.want)
				}
				return
			}
		})
	}
}

// TestCutCircle has a chain that goes on for ever outside all code, as one that begins
// in C may, not taken for a deep stack.
func TestCutCircle(t *testing.T) {
	callers := make([]uintptr, 64)
	callers = callers[:runtime.Callers(1, callers)]
	here, began := uint64(callers[0]), uint64(callers[len(callers)-1])
	for _, tt := range []struct {
		name  string
		chain []uint64
		want  bool
	}{
		{"ends within code", []uint64{here, here}, true},
		{"ends where the goroutine began", []uint64{here, began}, false},
		{"ends outside all code", []uint64{here, 1 << 32, 1 << 32}, false},
	} {
		if got, err := bpf.Cut(tt.chain...); err != nil || got != tt.want {
			t.Errorf("a chain that %s, %#x: got %t, %v, want %t", tt.name, tt.chain, got, err, tt.want)
		}
	}
}

// spinning samples this process while it spins, that many calls deep.
func spinning(t *testing.T, calls int, d time.Duration) *bpf.Profile {
	t.Helper()
	var over atomic.Bool
	var spins sync.WaitGroup
	s := begin(t, bpf.Options{PID: os.Getpid(), Hz: 999})
	spins.Go(func() { descend(calls, &over) })
	defer spins.Wait()
	defer over.Store(true)
	return finish(t, s, d)
}

// descend calls itself and spins at the end. What it returns is used after the
// call, which therefore has a frame.
//
//go:noinline
func descend(calls int, over *atomic.Bool) int {
	if calls > 0 {
		return 1 + descend(calls-1, over)
	}
	for !over.Load() {
	}
	return 0
}

// TestAstray has what functions in assembly spend charged to who calls them, though
// they keep something else where the frame pointer is, which leads nobody back.
func TestAstray(t *testing.T) {
	service := serve(t, build(t), &syscall.SysProcAttr{}, "sum")
	for d := time.Second; ; d *= 2 { // the machine may be busy
		p := finish(t, begin(t, bpf.Options{PID: service.pid, Hz: 999}), d)
		seen, charged := map[string]float64{}, map[string]float64{}
		for _, s := range p.Stacks {
			innermost := slices.IndexFunc(s.Frames, func(f cost.Frame) bool { return !strings.HasPrefix(f.Func, "[kernel]") })
			if innermost < 0 {
				continue
			}
			name := s.Frames[innermost].Func
			if !strings.HasPrefix(name, "crypto/") || !strings.Contains(name, ".block") {
				continue
			}
			seen[name] += s.Count
			if owner, _ := cost.Charge(s.Frames); strings.HasSuffix(owner.Name, ".Sum") {
				charged[name] += s.Count
			}
		}
		if (len(seen) < 2 || p.Seen < 400) && d < 16*time.Second {
			continue
		}
		if len(seen) < 2 {
			t.Fatalf("of %d samples few are of hashing: %v", p.Seen, seen)
		}
		for name, n := range seen {
			if charged[name] < 0.98*n {
				t.Errorf("%v of %v stacks of %s are charged to the middleware, want 98 %%", charged[name], n, name)
			}
		}
		return
	}
}

// TestOwnC has a function written in C that Go's linker took in lie in its program, as
// all others in C do, and Go's own stand for themselves.
func TestOwnC(t *testing.T) {
	for function, want := range map[string][]string{
		"runtime.mstart": {"runtime.mstart"},
		"x_cgo_init":     {"x_cgo_init", "[shop]"},
	} {
		got, err := bpf.OwnNames(function, "/srv/shop")
		if err != nil {
			t.Fatal(err)
		}
		if got == nil && strings.HasPrefix(function, "x_cgo_") {
			t.Skip("this test was built without C")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is named %q, want %q", function, got, want)
		}
	}
}

// TestWrapperAlone: what the compiler made up to call others has no frame, but somebody
// took the time.
func TestWrapperAlone(t *testing.T) {
	alone, called, err := bpf.WrapperNames()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"runtime.goexit1"}; !slices.Equal(alone, want) {
		t.Errorf("alone: got %q, want %q", alone, want)
	}
	if want := []string{"runtime.goexit"}; !slices.Equal(called, want) {
		t.Errorf("called: got %q, want %q", called, want)
	}
}
