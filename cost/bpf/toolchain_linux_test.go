//go:build linux && amd64

package bpf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/internal/toolchain"
)

// buildBy builds the program of testdata/service by a version of Go, or skips the
// test where that is not to be had.
func buildBy(t *testing.T, version string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds by other toolchains")
	}
	dir := t.TempDir()
	source, err := os.ReadFile("testdata/service/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"main.go": string(source), "go.mod": "module service\n\ngo 1.22\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goes := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+version, "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
		return cmd.CombinedOutput()
	}
	if out, err := goes("version"); err != nil {
		t.Skipf("no toolchain %s to be had: %s", version, out)
	}
	exe := filepath.Join(dir, "service")
	if out, err := goes("build", "-o", exe, "."); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return exe
}

// TestToolchains samples services that other versions of Go built, the newest to be had
// among them. Before Go 1.26 the chain of frame pointers goes on beyond where a goroutine or a thread begins, to
// addresses that nobody called: no cost may be charged to them.
func TestToolchains(t *testing.T) {
	for _, version := range []string{toolchain.Oldest, "go1.23.12", "go1.24.9", "go1.25.4", toolchain.Newest(t)} {
		t.Run(version, func(t *testing.T) {
			service := serve(t, buildBy(t, version), &syscall.SysProcAttr{}, "yield", "grow")
			p := enough(t, bpf.Options{PID: service.pid, Hz: 999}, bpf.Start)
			if got := p.Processes[0].Go; got != version && version != "local" {
				t.Fatalf("the service is said to be built by %s, want %s", got, version)
			}
			if idle := placed(t, p); idle < 10 {
				t.Errorf("%v stacks are the scheduler's, where such chains begin, want 10 or more", idle)
			}
			if seen := checkGrowth(t, p, 10); seen < 10 {
				t.Errorf("stacks were seen to grow %v times, want 10 or more", seen)
			}
		})
	}
}

// placed fails the test if stacks of a profile are charged to nobody or go on beyond
// where they began, and returns how many are the scheduler's.
func placed(t *testing.T, p *bpf.Profile) (idle float64) {
	t.Helper()
	if seen, charged := spun(p); charged < 0.98*seen {
		t.Errorf("%v of %v stacks of burn are charged to its middleware, want 98 %%", charged, seen)
	}
	for _, s := range p.Stacks {
		frames := names(s.Frames)
		for i, name := range frames[:len(frames)-1] {
			if name == "runtime.mcall" || name == "runtime.mstart" {
				t.Errorf("%v stacks go on beyond where they began: %v", s.Count, frames[i:])
			}
		}
		switch owner, _ := cost.Charge(s.Frames); owner.Name {
		case "scheduler":
			idle += s.Count
		case "[unknown]", "unknown":
			t.Errorf("%v stacks are charged to %s: %v", s.Count, owner.Name, frames)
		}
	}
	t.Logf("%v stacks are the scheduler's", idle)
	return idle
}

// TestGrowth samples a service whose goroutines' stacks grow, and whose goroutines the
// scheduler stops where they look whether they have to.
func TestGrowth(t *testing.T) {
	for _, args := range [][]string{nil, {"-ldflags=-s -w", "-buildmode=pie"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			service := serve(t, build(t, args...), &syscall.SysProcAttr{}, "yield", "grow")
			for d := time.Second; ; d *= 2 { // the machine may be busy
				p := finish(t, begin(t, bpf.Options{PID: service.pid, Hz: 999}), d)
				if checkGrowth(t, p, 50) >= 50 {
					return
				}
				if d > 16*time.Second {
					t.Fatalf("growth was hardly seen in %s: %d samples", d, p.Seen)
				}
			}
		})
	}
}

// checkGrowth fails the test unless the growth of stacks is charged to whose call has them
// grow, mostly by that name, and returns how often it was seen. Shares are judged only
// where it was seen enough times.
func checkGrowth(t *testing.T, p *bpf.Profile, enough float64) (seen float64) {
	t.Helper()
	var charged, named float64
	for _, s := range p.Stacks {
		frames := names(s.Frames)
		at := slices.Index(frames, "runtime.newstack")
		if at < 0 {
			continue
		}
		if at == 0 || !slices.Contains([]string{"runtime.copystack", "runtime.findfunc", "runtime.funcMaxSPDelta"}, frames[at-1]) {
			if at+1 < len(frames) {
				t.Errorf("%v stacks go on from where a goroutine was stopped: %v", s.Count, frames)
			}
			continue
		}
		seen += s.Count
		owner, cause := cost.Charge(s.Frames)
		if !strings.HasSuffix(owner.Name, ".Deep") || frames[at+1] != "main.deep" || frames[len(frames)-1] != "runtime.goexit" {
			t.Logf("%v stacks are charged to %s: %v", s.Count, owner.Name, frames)
			continue
		}
		charged += s.Count
		if cause == cost.StackGrowth { // the kernel has its own, of pages that are new
			named += s.Count
		}
	}
	t.Logf("of %v stacks where stacks grow, %v are charged to who has them grow, %v by that name", seen, charged, named)
	if seen >= enough && (charged < 0.95*seen || named < 0.25*seen) {
		t.Errorf("of %v stacks where stacks grow, %v are charged to who has them grow, %v by that name, want 95 %% and 25 %%", seen, charged, named)
	}
	return seen
}

// names returns a stack's functions alone, innermost first.
func names(frames []cost.Frame) []string {
	all := make([]string, len(frames))
	for i, f := range frames {
		all[i] = f.Func
	}
	return all
}
