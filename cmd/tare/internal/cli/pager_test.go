package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// Text longer than the screen goes through $PAGER; other text, and all in a pipe or without
// a pager, is printed.
func TestPrintPaged(t *testing.T) {
	if _, err := exec.LookPath("sed"); err != nil {
		t.Skip("SKIPPED: no sed to be the pager")
	}
	for _, tt := range []struct {
		name, pager string
		screen      bool
		lines       int
		paged, want string
	}{
		{"long", "sed s/^/>/", true, 3, ">a\n>b\n>c\n", ""},
		{"short", "sed s/^/>/", true, 4, "", "a\nb\nc\n"},
		{"a pipe", "sed s/^/>/", false, 0, "", "a\nb\nc\n"},
		{"no pager wanted", "", true, 3, "", "a\nb\nc\n"},
		{"no such pager", "no-such-pager", true, 3, "", "a\nb\nc\n"},
	} {
		t.Setenv("PAGER", tt.pager)
		screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
		if err != nil {
			t.Fatal(err)
		}
		defer screen.Close()
		var out bytes.Buffer
		term := &cli.Terminal{Out: &out, Lines: tt.lines}
		if tt.screen {
			term.Screen = screen
		}
		if err := term.PrintPaged("a\nb\nc\n"); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		paged, err := os.ReadFile(screen.Name())
		if err != nil || string(paged) != tt.paged || out.String() != tt.want {
			t.Errorf("%s: got %q by the pager and %q without, %v; want %q and %q", tt.name, paged, &out, err, tt.paged, tt.want)
		}
	}
}
