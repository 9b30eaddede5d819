package runs

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// A machine that others use is said to be busy, with the remedy, before anything is built.
// What else disturbs is left to the report.
func TestWarnBusy(t *testing.T) {
	var said strings.Builder
	p := NewProgress(&cli.Terminal{Err: &said})
	p.WarnBusy([]record.Fact{
		{Name: "steal", Value: "0.0 % now", Verdict: "ok"},
		{Name: "cpu in use", Value: "1.30 of 2 CPUs, tare apart", Verdict: "disturbs", Remedy: "stop other programs"},
		{Name: "turbo", Value: "on", Verdict: "disturbs", Remedy: "switch it off"},
	})
	if got, want := said.String(), "warning: this machine is busy: cpu in use: 1.30 of 2 CPUs, tare apart; stop other programs\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// On a terminal the line under way is cleared before the warning, which is wrapped.
func TestWarnBusyAmid(t *testing.T) {
	var said strings.Builder
	p := NewProgress(&cli.Terminal{Err: &said, Live: true, Columns: 80})
	p.Begin("reading what disturbs this machine")
	said.Reset()
	p.WarnBusy([]record.Fact{{Name: "cpu in use", Value: "2 of 2 CPUs", Verdict: "disturbs", Remedy: "stop other programs"}})
	if got := said.String(); !strings.HasPrefix(got, "\r\x1b[K") {
		t.Errorf("got %q, want the line cleared first", got)
	}
}

// The control's second trial in a block is not taken for its first.
func TestEndedTwin(t *testing.T) {
	var said strings.Builder
	p := NewProgress(&cli.Terminal{Err: &said})
	for _, tr := range []record.Trial{{}, {Twin: true}, {Twin: true, Invalid: []string{"too slow"}}} {
		tr.Metrics = map[string]float64{"throughput": 9}
		p.Show(lab.Event{Stage: lab.Ended, Arm: "a", Workload: "load", Block: 1, Result: &tr})
	}
	if got, want := said.String(), "block 1: a, load: 9/s\nblock 1: a again, load: 9/s\nblock 1: a again, load: invalid: too slow\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Before the first answer there is no median to show.
func TestNoMedianBeforeAnAnswer(t *testing.T) {
	var said strings.Builder
	p := NewProgress(&cli.Terminal{Err: &said, Live: true, Columns: 120})
	e := lab.Event{Stage: lab.Loading, Live: load.Snapshot{Response: &hist.Hist{}}}
	p.Show(e)
	if got := said.String(); got == "" || strings.Contains(got, "p50") {
		t.Errorf("no answer yet: %q", got)
	}
	e.Live.Response.Record(1500)
	p.Show(e)
	if got := said.String(); !strings.Contains(got, "p50 1.5") {
		t.Errorf("an answer after 1.5 µs: %q", got)
	}
}
