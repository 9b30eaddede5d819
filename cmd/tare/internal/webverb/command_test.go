package webverb

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

func TestArguments(t *testing.T) {
	c := &Command{Dir: "ci runs", Listen: "127.0.0.1:0", DB: "postgres://u@h/d", Reindex: true, Token: "token"}
	if got, want := c.arguments(), strings.Split("-listen|127.0.0.1:0|-db|postgres://u@h/d|-reindex|-upload-token-file|token|--|ci runs", "|"); !slices.Equal(got, want) {
		t.Errorf("the program is given %q, want %q", got, want)
	}
}

func TestNoFolder(t *testing.T) {
	var out bytes.Buffer
	term := &cli.Terminal{Out: &out, Err: &out}
	err := (&Command{Dir: filepath.Join(t.TempDir(), "none")}).Run(t.Context(), term)
	if got := cli.PrintError(term, err); got != cli.ExitUsage || !strings.Contains(out.String(), "hint: name the folder") {
		t.Errorf("ends with %d and prints %q, want 2 and a hint", got, out.String())
	}
}
