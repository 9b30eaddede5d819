package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/whatif"
)

// TestPrintWhatifUndecided promises nothing that chance explains, also where there are
// too few pairs for an interval.
func TestPrintWhatifUndecided(t *testing.T) {
	inf := math.Inf(1)
	for want, ratio := range map[string]whatif.Estimate{
		"not told apart from chance": {Value: 0.05, Low: -0.2, High: 0.3},
		"interval not bounded":       {Value: 1, Low: -inf, High: inf},
	} {
		res := &whatif.Result{PerTaken: ratio, Own: whatif.OwnTime{CPU: 20e3, Margin: 1e3}}
		var out bytes.Buffer
		if err := printWhatif(&cli.Terminal{Out: &out}, res); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Contains(text, "without it") || !strings.Contains(text, want) ||
			!strings.Contains(text, "What removing it would save cannot be told.") {
			t.Errorf("got\n%s\nwant nothing promised, and %q", text, want)
		}
	}
}

// TestExplainWhatif gives names that several functions have their remedy.
func TestExplainWhatif(t *testing.T) {
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
		if err := explainWhatif(tt.err); !errors.As(err, &f) || f.Status != tt.status || !strings.HasPrefix(f.Hint, tt.hint) {
			t.Errorf("%v: got %+v, want status %d and hint %q", tt.err, f, tt.status, tt.hint)
		}
	}
}

// TestPrintLayers shows a change with its margin; what nobody sampled has no margin, which
// is not a margin of 0.
func TestPrintLayers(t *testing.T) {
	var out bytes.Buffer
	printLayers(&out, []whatif.Layer{{Owner: "[kernel] not sampled", Change: 19400}, {Owner: "shop.Spin", Change: 300, Margin: 80}})
	if text := out.String(); strings.Contains(text, "± 0 ns") || !strings.Contains(text, "+19.4 µs ± –") || !strings.Contains(text, "+300 ns ± 80 ns") {
		t.Errorf("got %s", text)
	}
}

// Header fields that were asked for are sent with every request of the load.
func TestWhatifHeader(t *testing.T) {
	var sent, lacked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1); r.Header.Get("Authorization") != "Bearer a:b" {
			lacked.Add(1)
		}
	}))
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &whatifCmd{Load: s.URL, Conns: 1, For: time.Second, Header: []string{"Authorization: Bearer a:b"}}
	end, err := c.startLoad(ctx, nil) // returns after the warm-up
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := end(); err != nil {
		t.Log(err) // ended before anything was measured
	}
	if sent.Load() < 2 || lacked.Load() > 0 {
		t.Errorf("of %d requests %d lacked the field, want none", sent.Load(), lacked.Load())
	}
}

// A load that is only ever refused says nothing about the service's own work.
func TestWhatifRefused(t *testing.T) {
	var refused atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refused.Add(1)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &whatifCmd{Load: s.URL, Conns: 1, For: time.Second}
	end, err := c.startLoad(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for before := refused.Load(); refused.Load() < before+5; { // in the measured part
		time.Sleep(time.Millisecond)
	}
	stop()
	if got, err := end(); err != nil || len(got) != 1 || !strings.Contains(got[0].Error(), "status 4xx or 5xx") {
		t.Errorf("got warnings %q and %v, want that the answers were errors", got, err)
	}
}
