package record_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

func capture(seq int) record.Capture {
	return record.Capture{
		Seq: seq, Round: seq / 2, Arm: "none", Workload: "half", Sources: []study.Source{study.Pprof}, Start: day, Elapsed: time.Second,
		Requests: 5000, CPU: 400 * time.Millisecond, Bytes: 1 << 20, Objects: 5000, Metrics: map[string]float64{"memory_cpu": 1234.5},
		Seen: []record.Seen{{Source: study.Pprof, Share: 0.98, Bill: &cost.Bill{
			Source: "pprof", Seconds: 1, Requests: 5000, Per: "request", CPU: 80_000,
			Items: []cost.Item{{Kind: "middleware", Owner: "api.auth", Where: "api/auth.go:7", Self: 80_000, Causes: []cost.Share{{Cause: "own", Value: 80_000}}}},
		}}},
		Truth: map[string]record.Truth{"spin": {Calls: 1, CPU: 20_000}},
	}
}

func profiles(text string) []record.Profile {
	return []record.Profile{
		{Source: study.Pprof, Kind: "cpu", Data: []byte("cpu " + text)}, {Source: study.Pprof, Kind: "allocs", Data: []byte("allocs " + text)},
	}
}

func TestCaptures(t *testing.T) {
	w, dir := create(t)
	for i := range 2 {
		kept, err := w.AppendCapture(capture(i), profiles("x"))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"cpu": []string{"000000-pprof-cpu.pb.gz", "000001-pprof-cpu.pb.gz"}[i], "allocs": []string{"000000-pprof-allocs.pb.gz", "000001-pprof-allocs.pb.gz"}[i]}
		if got := kept.Seen[0].Files; !reflect.DeepEqual(got, want) {
			t.Errorf("capture %d has files %v, want %v", i, got, want)
		}
	}
	if _, err := w.AppendCapture(capture(1), nil); err == nil || !strings.Contains(err.Error(), "the next sequence number is 2") {
		t.Errorf("appending capture 1 again: error %v, want that 2 is next", err)
	}
	r := open(t, dir)
	want := capture(1)
	want.Seen[0].Files = map[string]string{"cpu": "000001-pprof-cpu.pb.gz", "allocs": "000001-pprof-allocs.pb.gz"}
	if len(r.Captures) != 2 || !reflect.DeepEqual(r.Captures[1], want) {
		t.Fatalf("read %+v, want the second to be %+v", r.Captures, want)
	}
	data, err := r.Profile(r.Captures[1].Seen[0].Files["allocs"])
	if err != nil || string(data) != "allocs x" {
		t.Errorf("profile is %q, %v, want what was written", data, err)
	}
	for _, name := range []string{"", ".", "..", "../manifest.json", "none"} {
		if _, err := r.Profile(name); err == nil {
			t.Errorf("reading profile %q succeeded, want an error", name)
		}
	}
}

// A capture that a crash cut short is lost, and the others are not; the run goes
// on behind them.
func TestTornCaptures(t *testing.T) {
	w, dir := create(t)
	appendTrials(t, w, 0, 2)
	if _, err := w.AppendCapture(capture(0), profiles("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish("interrupted"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "captures.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, `{"seq":1,"rou`...), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := open(t, dir); len(r.Captures) != 1 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Error(), "captures.jsonl:2: the last line is torn; its capture is lost") {
		t.Errorf("read %d captures with warnings %v, want 1 and that the last is lost", len(r.Captures), r.Warnings)
	}
	w, r, err := record.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Captures) != 1 || len(r.Trials) != 2 {
		t.Fatalf("resumed with %d captures and %d trials, want 1 and 2", len(r.Captures), len(r.Trials))
	}
	if _, err := w.AppendCapture(capture(1), nil); err != nil {
		t.Fatal(err)
	}
	if after := open(t, dir); after.Manifest.Outcome != "" {
		t.Errorf("the run has ended by %q, want it to go on", after.Manifest.Outcome)
	}
	if err := w.Finish("cap"); err != nil {
		t.Fatal(err)
	}
	if after := open(t, dir); len(after.Captures) != 2 || len(after.Warnings) != 0 {
		t.Errorf("read %d captures with warnings %v, want 2 and none", len(after.Captures), after.Warnings)
	}
	if err := os.WriteFile(path, []byte("{]\n{}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Open(dir); err == nil || !strings.Contains(err.Error(), "captures.jsonl:1: ") {
		t.Errorf("opening a damaged file: error %v, want its place", err)
	}
}
