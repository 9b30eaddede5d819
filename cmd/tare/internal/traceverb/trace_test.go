package traceverb

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/doc"
)

// TestTraceTooLarge says what makes a trace smaller.
func TestTraceTooLarge(t *testing.T) {
	f, ok := errors.AsType[*cli.Failure](explain(&capture.ProfileError{Err: fmt.Errorf("reading: %w", pprof.ErrTooLarge)}))
	if !ok || f.Status != cli.ExitFailed || !strings.Contains(f.Hint, "--for") {
		t.Errorf("got %+v, want a hint at --for", f)
	}
}

// TestNarrow has the table keep within a terminal, and still say whose the figures are.
func TestNarrow(t *testing.T) {
	const owner = "middleware.(*authenticator)"
	slow := exectrace.Group{Count: 1, Time: 5e7, Parts: []exectrace.Part{{Cause: exectrace.Cause{State: exectrace.Locked, Owner: exectrace.Owner{Kind: "middleware", Name: owner}}, Time: 5e7, Times: 1, Requests: 1}}}
	page := doc.Page{Blocks: (&story{Requests: &exectrace.Requests{Slow: slow}}).difference()}
	clitest.CheckPage(t, page, "50.0 ms", owner)
}
