//go:build linux && amd64

package probe_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestStopped stops a process that slows the target down as a terminal does: the
// target goes on as before, and is slowed down again when that process goes on.
func TestStopped(t *testing.T) {
	s := start(t, build(t))
	s.load(t, 2, "/")
	other := braking(t, s.pid)
	const slow = 900 * time.Microsecond // of the 1 ms that it takes
	if took := handled(t, s); took < slow {
		t.Errorf("got %s a call while slowed down by 1 ms", took)
	}
	for range 2 {
		other.Signal(syscall.SIGTSTP)
		becomes(t, "stopped", func() bool { return stopped(other.Pid) })
		becomes(t, "fast", func() bool { return handled(t, s) < slow })
		other.Signal(syscall.SIGCONT)
		becomes(t, "slow", func() bool { return handled(t, s) >= slow })
	}
	s.alive(t)
}

// braking starts a process that slows another one down until the test ends.
func braking(t *testing.T, pid int) *os.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), crashVar+"="+strconv.Itoa(pid), readyVar+"="+ready)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var said []byte
	becomes(t, "ready", func() bool {
		said, _ = os.ReadFile(ready)
		return len(said) > 0
	})
	if string(said) != "ready" {
		t.Skip(string(said))
	}
	return cmd.Process
}

// becomes waits until something is so.
func becomes(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for 30 s, and it is not %s", what)
		}
	}
}

func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") T "))
}
