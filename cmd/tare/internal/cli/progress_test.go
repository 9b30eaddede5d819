package cli_test

import (
	"bytes"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// A line that stays is broken between words where a terminal is narrower. In a pipe, and where
// it fits, it is as it was given.
func TestProgressLine(t *testing.T) {
	const line = "block 1: api-old, load: invalid: achieved 2266  requests a second"
	for _, tt := range []struct {
		columns int
		want    string
	}{
		{0, line + "\n"},
		{80, line + "\n"},
		{40, "block 1: api-old, load: invalid:\nachieved 2266 requests a second\n"},
	} {
		var said bytes.Buffer
		cli.NewProgress(&cli.Terminal{Err: &said, Columns: tt.columns}).Line(line)
		if said.String() != tt.want {
			t.Errorf("%d columns: got %q, want %q", tt.columns, said.String(), tt.want)
		}
	}
}
