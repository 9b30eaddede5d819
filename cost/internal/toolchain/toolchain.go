// Package toolchain finds versions of Go that are to be had, for tests of what reads
// programs built by them, and makes a program of one that is not known.
package toolchain

import (
	"bytes"
	"context"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Oldest is the oldest version whose programs are read.
const Oldest = "go1.22.12"

// Newest returns the newest version that the module proxy has for this system's tests, a
// release candidate only before its release; "local" if the proxy cannot be asked.
func Newest(t testing.TB) string {
	t.Helper()
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-versions", "golang.org/toolchain").Output()
	if err != nil {
		t.Logf("asking for the newest toolchain: %v", err)
		return "local"
	}
	return newest(strings.Fields(string(out)))
}

// newest picks from a list of versions such as v0.0.1-go1.27.4.linux-amd64.
func newest(list []string) string {
	best := "local"
	for _, entry := range list {
		name, ok := strings.CutSuffix(entry, ".linux-amd64")
		if !ok {
			continue
		}
		if name = strings.TrimPrefix(name, "v0.0.1-"); best == "local" || version.Compare(name, best) > 0 {
			best = name
		}
	}
	return best
}

// Unknown returns a copy of a program that says of itself to be of go1.21, which is not known.
func Unknown(t testing.TB, path string) string {
	t.Helper()
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	own := []byte(runtime.Version())
	other := append([]byte("go1.21"), bytes.Repeat([]byte("."), len(own))...)[:len(own)]
	exe := filepath.Join(t.TempDir(), "unknown")
	if err := os.WriteFile(exe, bytes.ReplaceAll(program, own, other), 0o700); err != nil {
		t.Fatal(err)
	}
	return exe
}
