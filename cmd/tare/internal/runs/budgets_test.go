package runs_test

import (
	"slices"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/tarehq/tare/cmd/tare/internal/runs"
)

// The command that continues a gate has the budgets as they were, and can be read.
func TestBudgetFlags(t *testing.T) {
	read := func(args []string) (b runs.Budgets) {
		t.Helper()
		var cli struct{ Max runs.Budgets }
		p, err := kong.New(&cli)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Parse(args); err != nil {
			t.Fatal(err)
		}
		return cli.Max
	}
	for _, text := range []string{"10000000%", "33.3333333%", "0.00001%", "5%", "0%"} {
		b := read([]string{"--max", "cpu_per_request<=" + text})
		flags := b.Flags()
		if again := read(flags); again["cpu_per_request"] != b["cpu_per_request"] || !slices.Equal(again.Flags(), flags) {
			t.Errorf("%s: %q is read as %v, want %v", text, flags, again, b)
		}
	}
}
