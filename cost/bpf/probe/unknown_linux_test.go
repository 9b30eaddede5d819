//go:build linux && amd64

package probe_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/internal/toolchain"
)

// TestUnknownToolchain has programs as they would be of a version of Go that is not
// known: one cannot be probed, and this one, as it cannot check itself, does not
// probe.
func TestUnknownToolchain(t *testing.T) {
	const probing = "PROBE_TEST_PROBES"
	if pid, err := strconv.Atoi(os.Getenv(probing)); err == nil {
		refused(t, pid, "cannot be checked on this program itself", `built by "go1.21`)
		return
	}
	s := start(t, build(t))
	open(t, s.pid)
	cmd := exec.Command(toolchain.Unknown(t, "/proc/self/exe"), "-test.run=^TestUnknownToolchain$", "-test.v")
	cmd.Env = append(os.Environ(), probing+"="+strconv.Itoa(s.pid))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestUnknownToolchain") {
		t.Errorf("as go1.21: %v\n%s", err, out)
	}
	refused(t, start(t, toolchain.Unknown(t, build(t))).pid, `built by "go1.21`, "known are go1.22 to go1.27")
}

// refused fails the test unless a process is not supported, for reasons.
func refused(t *testing.T, pid int, why ...string) {
	t.Helper()
	p, err := probe.Open(pid)
	if err == nil {
		p.Close()
	}
	if !errors.Is(err, cost.ErrNotSupported) {
		t.Errorf("opening %d: %v, want ErrNotSupported", pid, err)
		return
	}
	for _, want := range why {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
