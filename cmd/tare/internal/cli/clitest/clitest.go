// Package clitest checks what verbs print.
package clitest

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tarehq/tare/doc"
)

// CheckPage is CheckWidths for the text of a page.
func CheckPage(t *testing.T, p doc.Page, want ...string) {
	t.Helper()
	CheckWidths(t, func(w io.Writer, width int) {
		if err := doc.Text(w, p, doc.TextOptions{Width: width}); err != nil {
			t.Error(err)
		}
	}, want...)
}

// CheckWidths has tables keep within a terminal, and still say whose the figures are: what
// is printed holds all of want at any width.
func CheckWidths(t *testing.T, print func(w io.Writer, width int), want ...string) {
	t.Helper()
	for _, width := range []int{1, 30, 60, 80, 120} {
		var out bytes.Buffer
		print(&out, width)
		if width < 60 { // as narrow as that the terminal breaks lines
			continue
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("a line of %d columns, want at most %d:\n%s", n, width, line)
			}
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("no %q in %d columns:\n%s", text, width, out.String())
			}
		}
	}
}
