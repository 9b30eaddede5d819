package capture

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	profiles "runtime/pprof"
	"testing"

	"github.com/tarehq/tare/cost/pprof"
)

// A process that runs another program than the profile is of is not the service.
func TestRuns(t *testing.T) {
	var raw bytes.Buffer
	if err := profiles.Lookup("goroutine").WriteTo(&raw, 0); err != nil {
		t.Fatal(err)
	}
	own, err := pprof.ReadGoroutines(&raw)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := own.Program(), filepath.Base(exe); got != want {
		t.Errorf("the profile is of %q, want %q", got, want)
	}
	if !runsProgram(os.Getpid(), own) {
		t.Error("this process is said to run another program than itself")
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Skip("there is no sleep to start: ", err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	if runsProgram(other.Process.Pid, own) {
		t.Error("sleep is said to run this program")
	}
	if unknown := pprof.New(pprof.CPU, 0, nil); !runsProgram(other.Process.Pid, unknown) {
		t.Error("a profile that does not tell its program is said to be of another")
	}
}
