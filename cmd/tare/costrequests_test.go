package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/load"
)

// TestTracedRequests has a service answer half as much while it is traced: each part has
// the requests of its own time.
func TestTracedRequests(t *testing.T) {
	begun := time.Now()
	under := &offered{done: make(chan error, 1), res: &load.Result{Started: begun, Elapsed: 2 * time.Second}}
	under.done <- nil
	for at := time.Duration(0); at < 2*time.Second; at += slice {
		n := uint64(100)
		if at >= time.Second {
			n = 50
		}
		under.res.Series = append(under.res.Series, load.Slice{At: at, Answered: n})
		under.res.Counts.Scheduled += n
		under.res.Counts.Status[2] += n
	}
	b := &bill{window: cost.Window{Duration: time.Second}, waits: &exectrace.Trace{Duration: time.Second}}
	if err := under.count(func() {}, b, looked{begun, begun.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	if b.window.Requests != 2000 || math.Round(b.traced) != 1000 {
		t.Errorf("got %g requests of the profile and %g of the trace, want 2000 and 1000", b.window.Requests, b.traced)
	}
}

// TestRequestsOfOnePart has a service answer only while it is traced: CPU and waits are
// told a request all the same.
func TestRequestsOfOnePart(t *testing.T) {
	begun := time.Now()
	under := &offered{done: make(chan error, 1), res: &load.Result{
		Started: begun, Elapsed: 2 * time.Second, Series: []load.Slice{{At: 1500 * time.Millisecond, Answered: 8}},
		Counts: load.Counts{Scheduled: 8, Status: [6]uint64{2: 8}},
	}}
	under.done <- nil
	b := &bill{window: cost.Window{Duration: time.Second}, waits: &exectrace.Trace{Duration: time.Second}}
	if err := under.count(func() {}, b, looked{begun, begun.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	if b.window.Requests != 4 || b.traced != 0 {
		t.Errorf("got %g requests of the profile and %g of the trace, want 4, half of all, and as many", b.window.Requests, b.traced)
	}
}

// TestNotedRequests has a profile that tare cost wrote under load shown again: the
// requests that it has a note of still count, and are noted in what is written of it.
func TestNotedRequests(t *testing.T) {
	p := pprof.New(pprof.CPU, time.Second, []cost.Stack{{Frames: []cost.Frame{{Func: "net/http.(*conn).serve"}}, Count: 100, Value: 1e9}})
	p.SetRequests(1000, 0)
	var b bytes.Buffer
	if err := p.Label(&b); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	noted, again := filepath.Join(dir, "noted.pb.gz"), filepath.Join(dir, "again.pb.gz")
	if err := os.WriteFile(noted, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--profile", noted, "--pprof", again}, "CPU per request 1.00 ms"},
		{[]string{"--profile", again}, "CPU per request 1.00 ms"},
		{[]string{"--profile", again, "--requests", "500"}, "CPU per request 2.00 ms"},
	} {
		var table, errs bytes.Buffer
		args := append([]string{"cost"}, tt.args...)
		if status := run(t.Context(), args, &cli.Terminal{Out: &table, Err: &errs, Width: 200}); status != 0 {
			t.Fatalf("tare %v: exit status %d\n%s", args, status, errs.String())
		}
		if !strings.Contains(table.String(), tt.want) {
			t.Errorf("tare %v: want %q in\n%s", args, tt.want, table.String())
		}
	}
}
