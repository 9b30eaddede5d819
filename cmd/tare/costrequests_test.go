package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

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
