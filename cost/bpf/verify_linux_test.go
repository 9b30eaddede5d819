//go:build linux && amd64

package bpf_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/internal/toolchain"
)

// TestVerifyOffsets has the offsets that are known believed, by goroutines of different
// numbers, and none of the others.
func TestVerifyOffsets(t *testing.T) {
	goid, current, err := bpf.Offsets()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		for _, tt := range []struct {
			verify func(int) error
			offset int
		}{
			{bpf.VerifyGoid, goid},
			{bpf.VerifyCurrent, current},
		} {
			all.Go(func() {
				if err := tt.verify(tt.offset); err != nil {
					t.Errorf("offset %d: %v", tt.offset, err)
				}
				for _, wrong := range []int{-8, 0, tt.offset - 8, tt.offset - 4, tt.offset + 4, tt.offset + 8, 1 << 20} {
					err := tt.verify(wrong)
					if !errors.Is(err, cost.ErrNotSupported) || !strings.Contains(err.Error(), "record") {
						t.Errorf("offset %d, where %d is right: %v, want it refused", wrong, tt.offset, err)
					}
				}
			})
		}
	}
	all.Wait()
}

// TestUnknownToolchain has this test as it would be of a version of Go that is not
// known: it can neither be sampled nor, as it cannot check itself, sample.
func TestUnknownToolchain(t *testing.T) {
	const running = "TARE_UNKNOWN"
	if os.Getenv(running) != "" {
		_, err := bpf.Start(bpf.Options{PID: os.Getppid()})
		wants(t, err, "cannot be checked on this program itself", `built by "go1.21`)
		return
	}
	if err := bpf.Verify(); err != nil {
		t.Errorf("this program as it is: %v", err)
	}
	exe := toolchain.Unknown(t, "/proc/self/exe")
	cmd := exec.Command(exe, "-test.run=^TestUnknownToolchain$", "-test.v")
	cmd.Env = append(os.Environ(), running+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestUnknownToolchain") {
		t.Errorf("as go1.21: %v\n%s", err, out)
	}
	sampled := exec.Command(exe, "-test.run=^TestStay$")
	stdin, err := sampled.StdinPipe() // kept open: it stays
	if err != nil {
		t.Fatal(err)
	}
	sampled.Env = append(os.Environ(), "TARE_STAY=1")
	sampled.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := sampled.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		sampled.Process.Kill()
		sampled.Wait()
	}()
	finish(t, begin(t, bpf.Options{PID: os.Getpid()}), 0) // here there is sampling at all
	s, err := bpf.Start(bpf.Options{PID: sampled.Process.Pid})
	if err == nil {
		s.Stop()
	}
	wants(t, err, `built by "go1.21`, "known are go1.22 to go1.27")
}

// TestStay is a process to be sampled, until it is ended.
func TestStay(t *testing.T) {
	if os.Getenv("TARE_STAY") == "" {
		t.Skip("for TestUnknownToolchain alone")
	}
	os.Stdin.Read(make([]byte, 1))
}

// wants fails the test unless an error is of something that is not supported, and
// says why.
func wants(t *testing.T, err error, why ...string) {
	t.Helper()
	if !errors.Is(err, cost.ErrNotSupported) {
		t.Errorf("got %v, want ErrNotSupported", err)
		return
	}
	for _, want := range why {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
