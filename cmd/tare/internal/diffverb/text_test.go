package diffverb

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/doc"
)

// TestDiffNear shows what comes near a difference, and only that.
func TestDiffNear(t *testing.T) {
	row := func(owner string, p float64) diff.Row {
		return diff.Row{Owner: owner, Kind: "middleware", A: 4.2e3, B: 17.3e3, Diff: 13.1e3, Lo: 2.2e3, Hi: 24e3, P: p, Tested: true}
	}
	for _, tc := range []struct {
		name   string
		owners []diff.Row
		colour bool
		want   []string
		not    string
	}{
		{"near", []diff.Row{row("far", 0.3), row("mw.Signature", 0.029)}, false,
			[]string{"No owner's cost differs by more than chance (2 tested).", "not distinguishable from chance among 2 owners", "+13.1 µs", "mw.Signature, middleware", "More captures"}, "far"},
		{"grey", []diff.Row{row("mw.Signature", 0.029)}, true, []string{"\x1b[2m", "\x1b[0m"}, "far"},
		{"none near", []diff.Row{row("mw.Signature", 0.3)}, false, []string{"(1 tested)"}, "Nearest"},
	} {
		var out bytes.Buffer
		d := &page.Diff{A: "a", B: "b", CPU: &diff.Result{Per: "request", Owners: tc.owners}}
		if err := doc.Text(&out, diffPage(d), doc.TextOptions{Width: 100, Color: tc.colour}); err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", tc.name, want, out.String())
			}
		}
		if strings.Contains(out.String(), tc.not) {
			t.Errorf("%s: %q in\n%s", tc.name, tc.not, out.String())
		}
	}
}

// TestDiffWithin shows a function that differs also where its owner is not told to.
func TestDiffWithin(t *testing.T) {
	owners := []diff.Row{{Owner: "shop.list", Kind: "handler", A: 1e5, B: 1.02e5, Diff: 2e3, Lo: -4e3, Hi: 8e3, P: 0.5, Tested: true}}
	function := diff.Row{Owner: "shop.list", Kind: "handler", Function: "example.org/shop.price", A: 2e3, B: 4e3, Diff: 2e3, Lo: 1.5e3, Hi: 2.5e3, P: 1e-6, Tested: true, Differs: true}
	for _, told := range []bool{false, true} {
		owners[0].Differs = told
		var out bytes.Buffer
		d := &page.Diff{A: "a", B: "b", CPU: &diff.Result{Per: "request", Owners: owners, Functions: []diff.Row{function}}}
		if err := doc.Text(&out, diffPage(d), doc.TextOptions{Width: 100}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Count(text, "shop.price") != 1 || strings.Contains(text, "shop.price, of shop.list") == told {
			t.Errorf("the owner is told: %t; the function is not there once, with its owner if that is not:\n%s", told, text)
		}
	}
}

// TestNarrow has tables keep within a terminal, and still say whose the figures are.
func TestNarrow(t *testing.T) {
	const owner = "middleware.(*authenticator)"
	row := diff.Row{Owner: owner, Kind: "middleware", Function: "mw.(*authenticator).ServeHTTP", A: 425.7e3, B: 477.1e3, Diff: 151.4e3, Lo: 101.8e3, Hi: 201.1e3, P: 0.01, Tested: true, Differs: true}
	near := row
	near.Owner, near.Differs = "mw.Signature", false
	d := &page.Diff{A: "a", B: "b", CPU: &diff.Result{Per: "request", Owners: []diff.Row{row, near}, Functions: []diff.Row{row}}}
	clitest.CheckPage(t, diffPage(d), "+151 µs", owner, "mw.(*authenticator)", "mw.Signature")
}

// A comment has at most 25 lines outside of its fold, the verdict first, and no owner that does
// not differ.
func TestComment(t *testing.T) {
	result := func(owners int) *diff.Result {
		r := &diff.Result{Per: "request", CapturesA: 5, CapturesB: 5}
		for i := range owners {
			name := fmt.Sprintf("mw.Layer%d", i)
			r.Owners = append(r.Owners, diff.Row{Owner: name, Kind: "middleware", A: 1e3, B: 3e3, Diff: 2e3, Lo: 1e3, Hi: 3e3, Tested: true, Differs: true})
			r.Functions = append(r.Functions, diff.Row{Owner: name, Function: "crypto/sha256.block", Diff: 2e3, Tested: true, Differs: true},
				diff.Row{Owner: name, Function: "fmt.Sprint", Diff: -1e3, Tested: true, Differs: true})
		}
		r.Owners = append(r.Owners, diff.Row{Owner: "shop.list", Kind: "handler", A: 1e5, B: 1.02e5, Diff: 2e3, Lo: -4e3, Hi: 8e3, Tested: true})
		return r
	}
	less := result(1)
	less.Owners[0].Diff = -2e3
	for _, tc := range []struct {
		d                *page.Diff
		want             string // the first line
		function, absent string
	}{
		{&page.Diff{CPU: result(20), Bytes: result(30)}, "### CPU per request: 20 owners cost more; allocated per request: 30 owners cost more", "sha256.block", "Sprint"},
		{&page.Diff{CPU: result(1)}, "### CPU per request: 1 owner costs more", "sha256.block", "Sprint"},
		{&page.Diff{Bytes: less}, "### allocated per request: 1 owner costs less", "fmt.Sprint", "sha256"},
		{&page.Diff{CPU: result(0)}, "### CPU per request: no owner differs by more than chance", "", "middleware"},
	} {
		tc.d.A, tc.d.B, tc.d.Warnings = "runs/a:before", "runs/a:after", []string{"a warning"}
		var out strings.Builder
		if err := doc.Markdown(&out, comment(tc.d)); err != nil {
			t.Fatal(err)
		}
		outside, inside, _ := strings.Cut(out.String(), "<details>")
		first, _, _ := strings.Cut(outside, "\n")
		if first != tc.want || strings.Count(outside, "\n") > 25 || strings.Contains(outside, "shop.list") {
			t.Errorf("want the first line %q of at most 25, and what differs alone, got\n%s", tc.want, outside)
		}
		if !strings.Contains(outside, tc.function) || strings.Contains(outside, tc.absent) || !strings.Contains(inside, "a warning") {
			t.Errorf("want the function %q, not %q, and the warning folded, got\n%s", tc.function, tc.absent, out.String())
		}
	}
}
