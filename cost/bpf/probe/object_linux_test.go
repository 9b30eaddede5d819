//go:build linux && amd64

package probe_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestObject builds the programs for the kernel anew and holds them against those
// that are kept.
func TestObject(t *testing.T) {
	const compiler = "clang-14"
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no %s here", compiler)
	}
	source, err := os.ReadFile("probe_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	_, command, ok := strings.Cut(string(source), "//go:generate go ")
	if !ok {
		t.Fatal("probe_gen.go says nothing of how programs are generated")
	}
	args := strings.Fields(command) // run, bpf2go, and what it is to do
	dir := t.TempDir()
	args = append([]string{args[0], args[1], "-go-package", "probe", "-output-dir", dir}, args[2:]...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	for _, name := range []string{"device_x86_bpfel.o", "device_x86_bpfel.go"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, kept) {
			t.Errorf("%s is not what go generate makes of probe.bpf.c", name)
		}
	}
}
