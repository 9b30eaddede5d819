package main

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	profiles "net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/captured"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// An arm that was profiled by the runtime and by eBPF is shown as the runtime saw it:
// with the other's requests, of which nobody knows the bytes, each seemed to allocate
// half as much.
func TestOneSource(t *testing.T) {
	saved := func(kind pprof.Kind, value float64) []byte {
		var b bytes.Buffer
		frames := []cost.Frame{{Func: "example.org/shop.(*cart).ServeHTTP"}, {Func: "net/http.serverHandler.ServeHTTP"}, {Func: "net/http.(*conn).serve"}}
		if err := pprof.New(kind, time.Second, []cost.Stack{{Count: 100, Value: value, Frames: frames}}).Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	dir := filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Manifest{Study: study.Study{Name: "shop", Arms: []study.Arm{{Name: "a"}}, Workloads: []study.Workload{{Name: "all"}}}})
	if err != nil {
		t.Fatal(err)
	}
	const cpu, allocated = 3e5, 1000.0 // a request
	c := record.Capture{Arm: "a", Workload: "all", Elapsed: time.Second, Requests: 1000}
	c.CPU, c.Bytes, c.Seen = 300*time.Millisecond, 1e6, []record.Seen{{Source: study.Pprof}}
	_, err = w.AppendCapture(c, []record.Profile{
		{Source: study.Pprof, Kind: "cpu", Data: saved(pprof.CPU, 3e8)}, {Source: study.Pprof, Kind: "allocs", Data: saved(pprof.Allocs, 1e6)}})
	c.Seq, c.CPU, c.Bytes, c.Seen = 1, 500*time.Millisecond, 1e6, []record.Seen{{Source: study.EBPF}}
	_, errOutside := w.AppendCapture(c, []record.Profile{{Source: study.EBPF, Kind: "cpu", Data: saved(pprof.CPU, 5e8)}})
	if err := errors.Join(err, errOutside, w.Finish("decided")); err != nil {
		t.Fatal(err)
	}

	var bills []struct {
		Source string  `json:"source"`
		CPU    float64 `json:"cpu_ns"`
		Bytes  float64 `json:"bytes"`
	}
	told(t, &bills, "cost", "--study", dir, "--json")
	if len(bills) != 1 || math.Abs(bills[0].CPU-cpu) > 1 || math.Abs(bills[0].Bytes-allocated) > 1 || !strings.Contains(bills[0].Source, "1 capture of") {
		t.Errorf("tare cost --study: got %+v, want %g ns and %g bytes a request, of 1 capture", bills, cpu, allocated)
	}
	var d struct {
		CPU diff.Result `json:"cpu"`
	}
	told(t, &d, "diff", dir+":a", dir+":a", "--json")
	if got := d.CPU; math.Abs(got.Total.A-cpu) > 1 || got.CapturesA != 1 {
		t.Errorf("tare diff RUN:ARM: got %g ns a request of %d captures, want %g of 1", got.Total.A, got.CapturesA, cpu)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := captured.Cell{Captures: r.Captures}.Merge(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Bill(); math.Abs(got.CPU-cpu) > 1 || math.Abs(got.Bytes-allocated) > 1 {
		t.Errorf("tare doctor RUN: got %g ns and %g bytes a request, want %g and %g", got.CPU, got.Bytes, cpu, allocated)
	}
}

// Of a trace that breaks off, which tells less, whoever shows it says so.
func TestBrokenTraceIsTold(t *testing.T) {
	raw, err := os.ReadFile("../../cost/exectrace/testdata/chi.trace")
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw, "damage"...)
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", profiles.Index)
	mux.HandleFunc("/debug/pprof/profile", profiles.Profile)
	mux.HandleFunc("/debug/pprof/trace", func(w http.ResponseWriter, _ *http.Request) { w.Write(raw) })
	s := httptest.NewServer(mux)
	defer s.Close()

	dir := filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Manifest{Study: study.Study{Name: "shop", Arms: []study.Arm{{Name: "a"}}, Workloads: []study.Workload{{Name: "all"}}}})
	if err != nil {
		t.Fatal(err)
	}
	c := record.Capture{Arm: "a", Workload: "all", Elapsed: time.Second, Requests: 1000}
	c.Seen = []record.Seen{{Source: study.Trace}}
	_, err = w.AppendCapture(c, []record.Profile{{Source: study.Trace, Kind: "trace", Data: raw}})
	if err := errors.Join(err, w.Finish("decided")); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{
		{"cost", "--waits", "--for", "1s", "--json", s.URL},
		{"doctor", "--for", "1s", "--json", s.URL},
		{"cost", "--study", dir, "--json"},
		{"doctor", "--json", dir},
	} {
		if status, out, said := tare(t, args...); strings.Count(out, "the trace breaks off") != 1 {
			t.Errorf("tare %q: exit status %d, want to be told that the trace breaks off\n%s%s", args, status, out, said)
		}
	}
}
