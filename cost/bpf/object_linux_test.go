//go:build linux && amd64

package bpf_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestObjects builds the programs for the kernel anew, those of the packages below
// too, and holds them against those that are kept.
func TestObjects(t *testing.T) {
	const compiler = "clang-14"
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no %s here", compiler)
	}
	for pkg, dir := range map[string]string{"bpf": ".", "probe": "probe", "reply": "reply"} {
		t.Run(pkg, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(dir, "generate.go"))
			if err != nil {
				t.Fatal(err)
			}
			_, command, ok := strings.Cut(string(source), "//go:generate go run ")
			if !ok {
				t.Fatal("generate.go says nothing of how programs are generated")
			}
			out := t.TempDir()
			args := strings.Fields(command) // bpf2go, and what it is to do
			cmd := exec.Command("go", append([]string{"run", args[0], "-go-package", pkg, "-output-dir", out}, args[1:]...)...)
			cmd.Dir = dir
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", cmd, err, text)
			}
			made, err := os.ReadDir(out)
			if err != nil || len(made) < 2 || len(made)%2 != 0 {
				t.Fatalf("got %v, %v, want objects and their Go files", made, err)
			}
			for _, file := range made {
				got, err := os.ReadFile(filepath.Join(out, file.Name()))
				if err != nil {
					t.Fatal(err)
				}
				kept, err := os.ReadFile(filepath.Join(dir, file.Name()))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, kept) {
					t.Errorf("%s is not what go generate makes", file.Name())
				}
			}
		})
	}
}
