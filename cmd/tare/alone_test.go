package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// startAlone starts a program with profiles for one script, and returns its URL:
// a process profiles its CPU for one at a time, and scripts run side by side.
func startAlone(env *testscript.Env) (string, error) {
	cmd := exec.Command("tare-traced")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("starting a program with profiles: %w", err)
	}
	env.Defer(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("waiting for a program with profiles: %w", err)
	}
	return "http://" + strings.TrimSpace(addr), nil
}
