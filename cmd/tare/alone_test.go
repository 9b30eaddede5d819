package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// startAlone starts a program with profiles for one script, see traced, and returns the
// variables by which the script finds it, $PROFILEDURL and $PROFILEDPID: a process
// profiles its CPU for one at a time, what others load is no longer idle, and scripts run
// side by side.
func startAlone(env *testscript.Env) ([]string, error) {
	cmd := exec.Command("tare-traced")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a program with profiles: %w", err)
	}
	env.Defer(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("waiting for a program with profiles: %w", err)
	}
	return []string{"PROFILEDURL=http://" + strings.TrimSpace(addr), "PROFILEDPID=" + strconv.Itoa(cmd.Process.Pid)}, nil
}
