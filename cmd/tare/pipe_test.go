package main

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// broken is an output that takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: errors.New("no space left on device")}
}

// An output that cannot be written is no mistake in how the command was called.
func TestBrokenOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{"help", "cost --help", "list", "list --names", "list --json", "claims", "claims P1", "run --plan nesting", "version", "version --json", "env", "env --strict", "env --json", "completion bash", "completion zsh", "completion fish"} {
		var said strings.Builder
		if got := run(t.Context(), strings.Fields(args), &cli.Terminal{Out: broken{}, Err: &said, Width: 80}); got != cli.ExitFailed || !strings.Contains(said.String(), "no space left") {
			t.Errorf("tare %s: got exit status %d and %q, want %d and why", args, got, said.String(), cli.ExitFailed)
		}
	}
}

// writes counts them.
type writes int

func (w *writes) Write(p []byte) (int, error) {
	*w++
	return len(p), nil
}

// A short list is written at once: whoever reads its first line only may leave.
func TestListInOneWrite(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{"list", "list --names", "list --json"} {
		var n writes
		if got := run(t.Context(), strings.Fields(args), &cli.Terminal{Out: &n, Err: io.Discard, Width: 80}); got != 0 || n != 1 {
			t.Errorf("tare %s: got exit status %d after %d writes, want 0 after one", args, got, n)
		}
	}
}
