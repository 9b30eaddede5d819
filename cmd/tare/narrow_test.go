package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
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
		print func(w io.Writer, width int) error
		want  []string
	}{
		{"list", func(w io.Writer, width int) error {
			return printStudies(w, []listedStudy{{Name: "routescaling", Title: "What ten to 5,000 routes cost", Seconds: 9392, Quick: 140}, {Name: "null", Title: "Chance"}}, width)
		}, []string{"routescaling", "2h36m32s", "What ten to 5,000 routes cost", "Chance"}},
		{"runs", func(w io.Writer, width int) error {
			return printRuns(w, []listedRun{{Dir: "runs/20260102-150405-null", Outcome: "cap"}, {Dir: "runs/broken", Error: "reading the manifest: unexpected end of JSON input in the middle of it"}}, width)
		}, []string{"20260102-150405-null  0       cap\n", "unexpected end"}},
		{"cost", func(w io.Writer, width int) error {
			ownerTable{"request", true, width}.print(w, []cost.Item{item})
			return nil
		}, []string{"45.3 KiB", owner[:15]}},
		{"diff", func(w io.Writer, width int) error {
			printDiff(w, &diff.Result{Per: "request", Owners: []diff.Row{row}, Functions: []diff.Row{row}}, diffed{"CPU", unit.Nanoseconds, width, false})
			return nil
		}, []string{"+151 µs", owner[:15], "mw.(*authentica"}},
		{"near", func(w io.Writer, width int) error {
			printNear(w, &diff.Result{Owners: []diff.Row{near}}, diffed{"CPU", unit.Nanoseconds, width, false})
			return nil
		}, []string{"+151 µs", owner[:15]}},
		{"claims", func(w io.Writer, width int) error {
			row := claimRow{State: "run nesting", Figure: "+37.2 µs"}
			row.ID, row.Statement = "P1.nesting", "Three nested middlewares raise P95 by 37.2 µs over none at about 98,400 req/s"
			return (&claimsCmd{}).table(&cli.Terminal{Out: w, Width: width}, []claimRow{row})
		}, []string{"P1.nesting", "+37.2 µs", "Three nested mi", "1 claim, 1 run nesting"}},
		{"trace", func(w io.Writer, width int) error {
			slow := exectrace.Group{Count: 1, Time: 5e7, Parts: []exectrace.Part{{Cause: exectrace.Cause{State: exectrace.Locked, Owner: exectrace.Owner{Kind: "middleware", Name: owner}}, Time: 5e7, Times: 1, Requests: 1}}}
			(&story{Requests: &exectrace.Requests{Slow: slow}}).difference(w, width)
			return nil
		}, []string{"50.0 ms", owner[:15]}},
		{"gate", func(w io.Writer, width int) error {
			return (&gateCmd{}).print(&cli.Terminal{Out: w, Width: width}, []gateRow{
				{Metric: "cpu_per_request", Workload: "browser", Arm: "serve-reuse", Budget: 0.05, Blocks: 8, Result: "held", figure: "-69.2 %", span: "-75.3 to -63.0 %"},
				{Metric: "pss", Budget: 0.05, Result: "inconclusive", Why: "no workload of the run tells it", figure: "–", span: "–"},
			})
		}, []string{"held", "serve-reuse", "-69.2 %", "inconclusive", "no workload"}},
	} {
		for _, width := range []int{1, 30, 60, 80, 120} {
			var out bytes.Buffer
			if err := tt.print(&out, width); err != nil {
				t.Fatal(err)
			}
			if width < 60 { // as narrow as that the terminal breaks lines
				continue
			}
			for line := range strings.Lines(out.String()) {
				prose := strings.Contains(line, " → ") || strings.HasPrefix(line, "Nearest") || strings.HasPrefix(line, "More")
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && !prose {
					t.Errorf("%s: a line of %d columns, want at most %d:\n%s", tt.name, n, width, line)
				}
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s: no %q in %d columns:\n%s", tt.name, want, width, out.String())
				}
			}
		}
	}
}
