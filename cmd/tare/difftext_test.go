package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/page"
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
			[]string{"No owner's cost differs by more than chance (2 tested).", "not told from chance among 2 owners", "+13.1 µs", "mw.Signature, middleware", "More captures"}, "far"},
		{"grey", []diff.Row{row("mw.Signature", 0.029)}, true, []string{"\x1b[2m", "\x1b[0m"}, "far"},
		{"none near", []diff.Row{row("mw.Signature", 0.3)}, false, []string{"(1 tested)"}, "Nearest"},
	} {
		var out bytes.Buffer
		term := &cli.Terminal{Out: &out, Width: 100, Colour: tc.colour}
		if err := diffText(term, &page.Diff{A: "a", B: "b", CPU: &diff.Result{Per: "request", Owners: tc.owners}}); err != nil {
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
		term := &cli.Terminal{Out: &out, Width: 100}
		if err := diffText(term, &page.Diff{A: "a", B: "b", CPU: &diff.Result{Per: "request", Owners: owners, Functions: []diff.Row{function}}}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Count(text, "shop.price") != 1 || strings.Contains(text, "shop.price, of shop.list") == told {
			t.Errorf("the owner is told: %t; the function is not there once, with its owner if that is not:\n%s", told, text)
		}
	}
}

// TestDiffInterrupted interrupts a service's second capture: the first is compared
// with what was saved.
func TestDiffInterrupted(t *testing.T) {
	var raw bytes.Buffer
	if err := pprof.StartCPUProfile(&raw); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < time.Second; {
		sha256.Sum256(make([]byte, 1<<16))
	}
	pprof.StopCPUProfile()
	saved := filepath.Join(t.TempDir(), "b.pb.gz")
	if err := os.WriteFile(saved, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, whole := range []int32{0, 1} {
		ctx, interrupt := context.WithCancel(t.Context())
		var asked atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !strings.HasSuffix(r.URL.Path, "/profile"):
				http.NotFound(w, r)
			case asked.Add(1) <= whole:
				w.Write(raw.Bytes())
			default:
				interrupt()
				<-r.Context().Done()
			}
		}))
		var out, errs bytes.Buffer
		status := run(ctx, []string{"diff", "--for", "1s", s.URL, saved}, &cli.Terminal{Out: &out, Err: &errs, Width: 80})
		s.Close()
		interrupt()
		said := fmt.Sprintf("of A %d captures were taken, of B 1", whole)
		if status != cli.ExitInterrupted || strings.Contains(out.String(), said) != (whole > 0) {
			t.Errorf("after %d captures: status %d, %s%s\nwant %d, and what was captured, if anything", whole, status, out.String(), errs.String(), cli.ExitInterrupted)
		}
	}
}
