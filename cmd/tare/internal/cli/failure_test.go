package cli_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// TestPrintError wraps an error and its hint on a terminal, and breaks no line in a pipe.
func TestPrintError(t *testing.T) {
	text := strings.TrimSpace(strings.Repeat("word ", 20))
	err := cli.Usage(text, errors.New(text))
	for columns, want := range map[int]int{0: 2, 50: 6} {
		var said bytes.Buffer
		if got := cli.PrintError(&cli.Terminal{Err: &said, Columns: columns}, err); got != cli.ExitUsage {
			t.Errorf("got exit status %d, want %d", got, cli.ExitUsage)
		}
		n := 0
		for line := range strings.Lines(said.String()) {
			if n++; columns > 0 && len(line)-1 > columns {
				t.Errorf("a line of %d columns, want at most %d: %s", len(line)-1, columns, line)
			}
		}
		if n != want {
			t.Errorf("%d columns: got %d lines, want %d:\n%s", columns, n, want, said.String())
		}
	}
}
