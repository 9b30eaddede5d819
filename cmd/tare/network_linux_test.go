package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/capture"
)

// A process in a network namespace of its own has ports of its own: what listens
// here on the same ones is another service.
func TestOwnNetwork(t *testing.T) {
	if capture.InOwnNetwork(os.Getpid()) {
		t.Error("this process is said to be in another network")
	}
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Skipf("no network namespace to be had: %v", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := strconv.Itoa(cmd.Process.Pid)
	want := "nsenter -t " + pid + " -n tare "

	var said bytes.Buffer
	status := run(t.Context(), []string{"trace", "--pid", pid}, &cli.Terminal{Out: &said, Err: &said, Width: 80})
	if status != cli.ExitFailed || !strings.Contains(said.String(), want) {
		t.Errorf("tare trace: got exit status %d and %q, want %d and %q", status, said.String(), cli.ExitFailed, want)
	}
	if ok, err := condition("bpf"); err != nil || !ok {
		t.Skipf("no sampling from outside here: %v", err)
	}
	said.Reset()
	status = run(t.Context(), []string{"cost", "--pid", pid, "--load", deadURL(t)}, &cli.Terminal{Out: &said, Err: &said, Width: 80})
	if status != cli.ExitFailed || !strings.Contains(said.String(), want) || !strings.Contains(said.String(), "connection refused") {
		t.Errorf("tare cost: got exit status %d and %q, want %d and %q", status, said.String(), cli.ExitFailed, want)
	}
}
