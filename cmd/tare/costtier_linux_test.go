//go:build linux && amd64

package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/internal/injected"
)

// costOf looks at a process for a second.
func costOf(t *testing.T, pid int, more ...string) (status int, out, said string) {
	t.Helper()
	return tare(t, append([]string{"cost", "--for", "1s", "--pid", strconv.Itoa(pid)}, more...)...)
}

// wantOwnProfile wants a bill from the service's own profile, and why it is.
func wantOwnProfile(t *testing.T, out, said, why string) {
	t.Helper()
	for _, want := range []string{"cost of http://localhost:", "Warning: this is the service's own profile", why} {
		if !strings.Contains(out, want) {
			t.Errorf("got %q, want %q in it", out, want)
		}
	}
	if !strings.Contains(said, why) || !strings.Contains(said, "profiling http://localhost:") {
		t.Errorf("said %q, want what is done instead of sampling, and why: %s", said, why)
	}
}

// TestCostWithoutRights looks at a process as a user who may not sample it: this
// one, begun again as nobody. If it shows profiles they are taken, and if not it is
// said.
func TestCostWithoutRights(t *testing.T) {
	if os.Getenv("TARE_NOBODY") == "" {
		asNobody(t)
		return
	}
	if ok, err := condition("bpf"); err != nil || ok {
		t.Skipf("nobody may sample here: %v", err)
	}
	const why = "CAP_BPF"
	if status, out, said := costOf(t, os.Getpid()); status != cli.ExitFailed || out != "" ||
		!strings.Contains(said, "its own profiles cannot be had") || !strings.Contains(said, why) {
		t.Errorf("without profiles: got status %d, %q and %q; want %d, and both reasons", status, out, said, cli.ExitFailed)
	}
	s := httptest.NewServer(http.DefaultServeMux)
	defer s.Close()
	status, out, said := costOf(t, os.Getpid())
	if status != 0 {
		t.Errorf("got status %d, want 0", status)
	}
	wantOwnProfile(t, out, said, why)
	status, out, said = costOf(t, os.Getpid(), "--marks")
	if status != cli.ExitFailed || !strings.Contains(said, "calls were not watched") {
		t.Errorf("with --marks: got status %d and %q, want %d, and that calls were not watched", status, said, cli.ExitFailed)
	}
	wantOwnProfile(t, out, said, why)
}

// asNobody runs the test that calls it again, as a user without rights.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "tare-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tare.test") // where this one lies, nobody may look
	err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, program, 0o755), os.Chmod(path, 0o755))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), "TARE_NOBODY=1", "TMPDIR=/tmp"), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Skipf("%s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// TestCostOfUnknownToolchain looks at a program of a version of Go that is not
// known: its functions cannot be named from outside, and it is asked itself.
func TestCostOfUnknownToolchain(t *testing.T) {
	if ok, err := condition("bpf"); err != nil || !ok {
		t.Skipf("no sampling from outside here: %v", err)
	}
	path := injected.Build(t)
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const version, unknown = "go1.26", "go1.99"
	_, info, found := bytes.Cut(program, []byte("\xff Go buildinf:"))
	at := bytes.Index(info, []byte(version))
	if !found || at < 0 || at > 100 {
		t.Skipf("not built by %s", version)
	}
	copy(info[at:], unknown) // of program
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	s := injected.Start(t, path)
	defer s.Stop()
	status, out, said := costOf(t, s.PID, "--load", s.URL, "-c", "2")
	if status != 0 {
		t.Errorf("got status %d, want 0", status)
	}
	wantOwnProfile(t, out, said, unknown)
	if !strings.Contains(out, "  layers.Spin") {
		t.Errorf("got %q, want its middleware", out)
	}
}
