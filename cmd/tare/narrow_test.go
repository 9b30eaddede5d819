package main

import (
	"io"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/stats/unit"
)

// TestNarrow has tables keep within a terminal, and still say whose the figures are.
func TestNarrow(t *testing.T) {
	const owner = "middleware.(*authenticator)"
	item := cost.Item{Kind: "middleware", Owner: owner, Where: "mw/auth.go:34", Self: 12.3e3, Margin: 7.26e3, Total: 48.1e3, GC: 33.4e3, Bytes: 46387, Objects: 7.77}
	row := diff.Row{Owner: owner, Kind: "middleware", Function: "mw.(*authenticator).ServeHTTP", A: 425.7e3, B: 477.1e3, Diff: 151.4e3, Lo: 101.8e3, Hi: 201.1e3, P: 0.01, Tested: true, Differs: true}
	near := row
	near.Differs = false
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
		{"cost", func(w io.Writer, width int) {
			ownerTable{"request", true, width}.print(w, []cost.Item{item})
		}, []string{"45.3 KiB", owner[:15]}},
		{"diff", func(w io.Writer, width int) {
			printDiff(w, &diff.Result{Per: "request", Owners: []diff.Row{row}, Functions: []diff.Row{row}}, diffed{"CPU", unit.Nanoseconds, width, false})
		}, []string{"+151 µs", owner[:15], "mw.(*authentica"}},
		{"near", func(w io.Writer, width int) {
			printNear(w, &diff.Result{Owners: []diff.Row{near}}, diffed{"CPU", unit.Nanoseconds, width, false})
		}, []string{"+151 µs", owner[:15]}},
		{"trace", func(w io.Writer, width int) {
			slow := exectrace.Group{Count: 1, Time: 5e7, Parts: []exectrace.Part{{Cause: exectrace.Cause{State: exectrace.Locked, Owner: exectrace.Owner{Kind: "middleware", Name: owner}}, Time: 5e7, Times: 1, Requests: 1}}}
			(&story{Requests: &exectrace.Requests{Slow: slow}}).difference(w, width)
		}, []string{"50.0 ms", owner[:15]}},
	} {
		t.Run(tt.name, func(t *testing.T) { clitest.CheckWidths(t, tt.print, tt.want...) })
	}
}
