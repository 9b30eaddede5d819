package main

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/lab/captured"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// A capture's profile is shorter than the time over which its requests were
// counted, and sees less than the kernel does. All commands that read it scale it
// to what the kernel counted, but for what the profiler cannot see.
func TestRunsAreScaledAlike(t *testing.T) {
	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		t.Fatal(err)
	}
	sunk(20, time.Now().Add(500*time.Millisecond))
	pprof.StopCPUProfile()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Manifest{Study: study.Study{Name: "deep", Arms: []study.Arm{{Name: "a"}}, Workloads: []study.Workload{{Name: "all"}}}})
	if err != nil {
		t.Fatal(err)
	}
	c := record.Capture{Arm: "a", Workload: "all", Elapsed: 2 * time.Second, CPU: 3 * time.Second, Monitor: time.Second / 2, Requests: 1000,
		Seen: []record.Seen{{Source: study.Pprof, Share: 0.7}}}
	if _, err := w.AppendCapture(c, []record.Profile{{Source: study.Pprof, Kind: "cpu", Data: cpu.Bytes()}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish("decided"); err != nil {
		t.Fatal(err)
	}
	const want = 3e6 // ns a request
	var bills []struct {
		CPU    float64 `json:"cpu_ns"`
		Owners []struct {
			Owner string  `json:"owner"`
			Self  float64 `json:"self_ns"`
		} `json:"owners"`
	}
	told(t, &bills, "cost", "--study", dir, "--json")
	if len(bills) != 1 || math.Abs(bills[0].CPU-want) > 1 {
		t.Errorf("tare cost --study: got %+v, want %g ns", bills, want)
	}
	monitor := 0.0
	for _, o := range bills[0].Owners {
		if o.Owner == "system monitor" {
			monitor += o.Self
		}
	}
	if math.Abs(monitor-5e5) > 1 {
		t.Errorf("tare cost --study: the system monitor took %g ns, want what the kernel counted, 500000", monitor)
	}
	var d struct {
		CPU diff.Result `json:"cpu"`
	}
	told(t, &d, "diff", dir+":a", dir+":a", "--json")
	if got := d.CPU.Total.A; math.Abs(got-want) > 1 {
		t.Errorf("tare diff RUN:ARM: got %g ns a request, want %g", got, want)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := captured.Cell{Captures: r.Captures}.Merge(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Bill().CPU; math.Abs(got-want) > 1 {
		t.Errorf("tare doctor RUN: got %g ns a request, want %g", got, want)
	}
}

// told runs a command and reads what it prints as JSON.
func told(t *testing.T, into any, args ...string) {
	t.Helper()
	status, out, said := tare(t, args...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("tare %v: exit status %d, %v: %s%s", args, status, err, out, said)
	}
}
