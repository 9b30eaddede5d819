package safelog_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/safelog"
)

// broken panics where it is told to.
type broken struct {
	slog.Handler
	enabled, handle bool
}

func (b broken) Enabled(context.Context, slog.Level) bool {
	if b.enabled {
		panic("broken")
	}
	return true
}

func (b broken) Handle(ctx context.Context, r slog.Record) error {
	if b.handle {
		panic("broken")
	}
	return b.Handler.Handle(ctx, r)
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		enabled, handle bool
		want            string
	}{{false, false, "msg=text"}, {true, false, ""}, {false, true, ""}} {
		var out bytes.Buffer
		log := safelog.New(slog.New(broken{slog.NewTextHandler(&out, nil), c.enabled, c.handle}))
		log.Error("text")
		if got := out.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: logged %q, want %q", c, got, c.want)
		}
	}
	var out bytes.Buffer
	safelog.New(slog.New(slog.NewTextHandler(&out, nil))).WithGroup("g").With("a", 1).Error("text")
	if !strings.Contains(out.String(), "g.a=1") {
		t.Errorf("logged %q, want the attribute of the group", &out)
	}
}
