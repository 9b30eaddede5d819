package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

//go:noinline
func sunk(n int, until time.Time) int {
	if n == 0 {
		turns := 0
		for time.Now().Before(until) {
			turns++
		}
		return turns
	}
	return 1 + sunk(n-1, until)
}

// TestCutStacksAreTold has stacks that the runtime cuts off, in a profile and in a
// run that kept it, and sees that every verb says so.
func TestCutStacksAreTold(t *testing.T) {
	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		t.Fatal(err)
	}
	sunk(200, time.Now().Add(time.Second))
	pprof.StopCPUProfile()
	file := filepath.Join(t.TempDir(), "cpu.pb.gz")
	if err := os.WriteFile(file, cpu.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Manifest{Study: study.Study{Name: "deep", Arms: []study.Arm{{Name: "a"}}, Workloads: []study.Workload{{Name: "all"}}}})
	if err != nil {
		t.Fatal(err)
	}
	c := record.Capture{Arm: "a", Workload: "all", Elapsed: time.Second, Requests: 1000, Seen: []record.Seen{{Source: study.Pprof}}}
	if _, err := w.AppendCapture(c, []record.Profile{{Source: study.Pprof, Kind: "cpu", Data: cpu.Bytes()}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish("decided"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		told int
	}{
		{[]string{"cost", "--profile", file}, 1},
		{[]string{"cost", "--profile", file, "--json"}, 1},
		{[]string{"cost", "--study", dir}, 1},
		{[]string{"doctor", "--json", dir}, 1},
		{[]string{"diff", file, file}, 2}, // of either side
		{[]string{"diff", dir + ":a", file, "--json"}, 2},
	} {
		status, out, said := tare(t, tt.args...)
		if status == cli.ExitFailed || status == cli.ExitUsage || strings.Count(out, "runtime cuts them off") != tt.told {
			t.Errorf("tare %v: exit status %d, want to be told %d times\n%s%s", tt.args, status, tt.told, out, said)
		}
	}
}
