// Package testenv stands in for internal/testenv, which only Go's own modules
// may import.
package testenv

import (
	"context"
	"os/exec"
	"testing"
)

// Builder names Go's build machine: none.
func Builder() string { return "" }

// Command is a command that ends with the test.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	return CommandContext(t, t.Context(), name, args...)
}

// CommandContext is a command that ends with the context.
func CommandContext(_ testing.TB, ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}

// SkipFlaky skips a test that Go's authors know to fail at times.
func SkipFlaky(t testing.TB, issue int) {
	t.Helper()
	t.Skipf("flaky: https://go.dev/issue/%d", issue)
}
