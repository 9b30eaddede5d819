package main

import (
	"io"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
)

// TestNarrow has tables keep within a terminal, and still say whose the figures are.
func TestNarrow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		print func(w io.Writer, width int)
		want  []string
	}{
		{"list", func(w io.Writer, width int) {
			printStudies(w, []listedStudy{{Name: "routescaling", Title: "What ten to 5,000 routes cost", Seconds: 9392, Quick: 140}, {Name: "null", Title: "Chance"}}, width)
		}, []string{"routescaling", "2h36m32s", "What ten to 5,000 routes cost", "Chance"}},
		{"runs", func(w io.Writer, width int) {
			printRuns(w, []listedRun{{Dir: "runs/20260102-150405-null", Outcome: "cap"}, {Dir: "runs/broken", Error: "reading the manifest: unexpected end of JSON input in the middle of it"}}, width)
		}, []string{"20260102-150405-null  0       cap\n", "unexpected end"}},
	} {
		t.Run(tt.name, func(t *testing.T) { clitest.CheckWidths(t, tt.print, tt.want...) })
	}
}
