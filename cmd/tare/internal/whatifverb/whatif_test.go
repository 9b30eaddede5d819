package whatifverb

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/whatif"
	"github.com/tarehq/tare/doc"
)

// TestPrintUndecided promises nothing that chance explains, also where there are
// too few pairs for an interval.
func TestPrintUndecided(t *testing.T) {
	inf := math.Inf(1)
	for want, ratio := range map[string]whatif.Estimate{
		"not distinguishable from chance": {Value: 0.05, Low: -0.2, High: 0.3},
		"interval not bounded":            {Value: 1, Low: -inf, High: inf},
	} {
		res := &whatif.Result{PerTaken: ratio, Own: whatif.OwnTime{CPU: 20e3, Margin: 1e3}}
		var out bytes.Buffer
		if err := doc.Text(&out, resultPage(res), doc.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Contains(text, "without it") || !strings.Contains(text, want) ||
			!strings.Contains(text, "That does not show what removing it would save.") {
			t.Errorf("got\n%s\nwant nothing promised, and %q", text, want)
		}
	}
}

// TestExplain gives names that several functions have their remedy.
func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		hint   string
	}{
		{&whatif.AmbiguousError{Owners: []probe.Watched{{}, {Met: true}}}, cli.ExitUsage, "name one by file.go:line"},
		{&whatif.AmbiguousError{Owners: []probe.Watched{{}, {}}}, cli.ExitFailed, "load the service"},
		{fmt.Errorf("%w: %w", whatif.ErrUnwatched, cost.ErrNotSupported), cli.ExitFailed, "with --load URL"},
		{&whatif.TooSlow{}, cli.ExitThreshold, ""},
	} {
		var f *cli.Failure
		if err := explain(tt.err); !errors.As(err, &f) || f.Status != tt.status || !strings.HasPrefix(f.Hint, tt.hint) {
			t.Errorf("%v: got %+v, want status %d and hint %q", tt.err, f, tt.status, tt.hint)
		}
	}
}

// TestPrintLayers shows a change with its margin; what nobody sampled has no margin, which
// is not a margin of 0.
func TestPrintLayers(t *testing.T) {
	var out bytes.Buffer
	layers := layerBlocks([]whatif.Layer{{Owner: "[kernel] not sampled", Change: 19400}, {Owner: "shop.Spin", Change: 300, Margin: 80}})
	if err := doc.Text(&out, doc.Page{Blocks: layers}, doc.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "0 ns  [") || !strings.Contains(text, "+19.4 µs      –") || !strings.Contains(text, "+300 ns  80 ns") {
		t.Errorf("got %s", text)
	}
}
