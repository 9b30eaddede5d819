package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// A process in a network namespace of its own has ports of its own: what listens
// here on the same ones is another service.
func TestOwnNetwork(t *testing.T) {
	if hint := ownNetwork(os.Getpid(), "cost"); hint != "" {
		t.Errorf("of this process: %q, want nothing", hint)
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
	if status != cli.ExitFailed || !strings.Contains(said.String(), want+"trace") {
		t.Errorf("tare trace: got exit status %d and %q, want %d and %q", status, said.String(), cli.ExitFailed, want)
	}
	refused := errors.New("connection refused")
	for pid, want := range map[int]string{cmd.Process.Pid: want + "cost", os.Getpid(): "", 0: ""} {
		err := (&costCmd{PID: pid}).unloaded(refused)
		var f *cli.Failure
		hint := ""
		if errors.As(err, &f) {
			hint = f.Hint
		}
		if !errors.Is(err, refused) || !strings.Contains(hint, want) || (want == "") != (hint == "") {
			t.Errorf("process %d: got %v and hint %q, want %q", pid, err, hint, want)
		}
	}
}
