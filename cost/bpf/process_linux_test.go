//go:build linux && amd64

package bpf_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf"
)

// start starts a program in C several times, and returns the processes' numbers and
// what ends them.
func start(t *testing.T, n int, name string, args ...string) (pids []int, end func()) {
	t.Helper()
	var all []*exec.Cmd
	end = func() {
		for _, c := range all {
			c.Process.Kill()
			c.Wait()
		}
		all = nil
	}
	t.Cleanup(end)
	for range n {
		c := exec.Command(name, args...)
		if err := c.Start(); err != nil {
			t.Skipf("no program to start that is not Go's: %v", err)
		}
		all = append(all, c)
		pids = append(pids, c.Process.Pid)
	}
	return pids, end
}

// TestProgramsReadOnce reads a program once, however many processes run it.
func TestProgramsReadOnce(t *testing.T) {
	pids, _ := start(t, 3, "sleep", "60")
	pids = append(pids, os.Getpid(), os.Getpid())
	if n, err := bpf.Programs(pids...); n != 2 || err != nil {
		t.Errorf("three processes of sleep, and this one: got %d programs, %v, want 2", n, err)
	}
}

// TestSameStacksAnew has a process run its program anew where it lay before, as one does
// that is not position-independent: what was seen of it until then is not forgotten.
func TestSameStacksAnew(t *testing.T) {
	if kept := bpf.Anew(70, 30); kept != 100 {
		t.Errorf("of 70 samples of a stack before a program begins anew and 30 after it, %d are kept", kept)
	}
}

// TestForeignGroup watches several processes of one program that is not Go's: why it
// cannot be read is said once.
func TestForeignGroup(t *testing.T) {
	const n = 3
	pids, end := start(t, n, "sh", "-c", "while :; do :; done")
	group := controlGroup(t, &running{pid: pids[0], kill: end})
	for _, pid := range pids[1:] {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for d := time.Second; ; d *= 2 { // the machine may be busy
		p := finish(t, begin(t, bpf.Options{Cgroup: group, Hz: 999}), d)
		text, of := fmt.Sprint(p.Warnings), fmt.Sprintf("%d processes, ", n)
		if !strings.Contains(text, of) && d <= 16*time.Second {
			continue
		}
		if len(p.Warnings) != 1 || !strings.Contains(text, of) || !strings.Contains(text, "no Go program") {
			t.Errorf("got warnings %q, want one, of %d processes", p.Warnings, n)
		}
		return
	}
}
