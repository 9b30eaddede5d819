package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// TestHelp has help be of tare, of a verb with a page or without one, and of a topic.
func TestHelp(t *testing.T) {
	for line, want := range map[string][]string{
		"help":         {"Running services:\n  cost ", "Comparisons:\n  ab ", "6 the watched process or", "topics.\n", `Run "tare help TOPIC"`},
		"help gate":    {"Guarding a release\n"},
		"gate --help":  {"Usage: tare gate ", "Run \"tare help gate\" to read its guide.\n"},
		"help version": {"Usage: tare version "},
		"help nesting": {"nesting: What nested middleware costs\n", "three layers into one function", "no middleware (the control)", "P1.nesting", "`tare run nesting --quick`"},
		"list nesting": {"nesting: What nested middleware costs\n"},
		"help topics":  {"Documentation\n", "tare help study-files"},
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), strings.Fields(line), &cli.Terminal{Out: &out, Err: &errs, Width: 80}); status != 0 {
			t.Errorf("tare %s: status %d: %s", line, status, &errs)
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("tare %s: no %q in\n%s", line, text, &out)
			}
		}
	}
}
