// Package toolchain finds versions of Go that are to be had, for tests of what reads
// programs built by them.
package toolchain

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/semver"
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
	for _, version := range list {
		name, ok := strings.CutSuffix(version, ".linux-amd64")
		if !ok {
			continue
		}
		if name = strings.TrimPrefix(name, "v0.0.1-"); best == "local" || semver.Compare(semantic(name), semantic(best)) > 0 {
			best = name
		}
	}
	return best
}

// semantic writes a version of Go, such as go1.28rc1, as a semantic one.
func semantic(version string) string {
	version = strings.TrimPrefix(version, "go")
	pre := ""
	for _, kind := range []string{"rc", "beta"} {
		if at := strings.Index(version, kind); at >= 0 {
			version, pre = version[:at], "-"+kind+"."+version[at+len(kind):]
		}
	}
	parts := strings.Split(version, ".")
	for len(parts) < 3 {
		parts = slices.Concat(parts, []string{"0"})
	}
	return "v" + strings.Join(parts, ".") + pre
}
