package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/studies"
)

// keepRun keeps a run of a study whose trials tell all that trials can.
func keepRun(t *testing.T, name string) (dir string) {
	t.Helper()
	s, err := studies.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Manifest{ID: "run", Study: *s, Outcome: "cap"})
	if err != nil {
		t.Fatal(err)
	}
	seq := 0
	for block := range 6 {
		for _, wl := range s.Workloads {
			for i, arm := range s.ArmsOf(wl) {
				tr := record.Trial{Seq: seq, Block: block, Arm: arm.Name, Workload: wl.Name, Requests: 200_000, Elapsed: 2 * time.Second, Steady: true, Metrics: map[string]float64{}}
				for _, m := range study.Metrics() {
					tr.Metrics[m.Name] = 1000 + float64(100*i+block)
				}
				seq++
				err = errors.Join(err, w.Append(tr, nil))
			}
		}
	}
	if err := errors.Join(err, w.Finish("cap")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestReportIsAScreen has a report be short on a terminal, and say how to see the rest, which
// --all shows, as a pipe does.
func TestReportIsAScreen(t *testing.T) {
	dir := keepRun(t, "nesting")
	lines := func(terminal cli.Terminal, args ...string) []string {
		t.Helper()
		var out, errs bytes.Buffer
		terminal.Out, terminal.Err, terminal.Width, terminal.Columns = &out, &errs, 100, 100
		if status := run(t.Context(), append([]string{"report"}, args...), &terminal); status != 0 {
			t.Fatalf("tare report %v: status %d: %s", args, status, errs.String())
		}
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	short, piped, all := lines(cli.Terminal{}, dir), lines(cli.Terminal{Piped: true}, dir), lines(cli.Terminal{}, "--all", dir)
	const screen = 50
	if n := len(short); n > screen || len(piped) < 2*screen || len(all) < 2*screen {
		t.Errorf("got %d lines on a terminal, %d in a pipe, %d of --all; want at most %d, and more", n, len(piped), len(all), screen)
	}
	if got, want := short[len(short)-1], "these parts in full: tare report --all "+dir; got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
	if got := strings.Join(short, "\n"); !strings.Contains(got, "Published claims: ") || strings.Contains(got, "Headline: ") {
		t.Errorf("it lacks the summaries, or shows what they sum up:\n%s", got)
	}
}
