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
	status := run(t.Context(), []string{"trace", "--pid", pid}, &terminal{out: &said, err: &said, width: 80})
	if status != exitCould || !strings.Contains(said.String(), want+"trace") {
		t.Errorf("tare trace: got exit status %d and %q, want %d and %q", status, said.String(), exitCould, want)
	}
	refused := errors.New("connection refused")
	for pid, want := range map[int]string{cmd.Process.Pid: want + "cost", os.Getpid(): "", 0: ""} {
		err := (&costCmd{PID: pid}).unloaded(refused)
		var f *failure
		hint := ""
		if errors.As(err, &f) {
			hint = f.hint
		}
		if !errors.Is(err, refused) || !strings.Contains(hint, want) || (want == "") != (hint == "") {
			t.Errorf("process %d: got %v and hint %q, want %q", pid, err, hint, want)
		}
	}
}
