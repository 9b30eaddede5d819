package diffverb

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
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// save writes stacks as a profile to a file of a name.
func save(t *testing.T, name string, kind pprof.Kind, stacks ...cost.Stack) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.New(kind, time.Second, stacks).Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestDiffShown leaves passwords out of what is shown, and names of files as they are.
func TestDiffShown(t *testing.T) {
	for _, tt := range []struct {
		s    side
		want string
	}{
		{side{source: "http://me:secret@host:6060", live: true, service: capture.Service{URL: "http://me:secret@host:6060"}}, "http://me:xxxxx@host:6060/debug/pprof/"},
		{side{source: "host:6060", live: true}, "host:6060"},
		{side{source: "before@v1/"}, "before@v1/"},
	} {
		if got := tt.s.shown(); got != tt.want {
			t.Errorf("%s is shown as %s, want %s", tt.s.source, got, tt.want)
		}
	}
}

// TestDiffSampled checks that allocations are compared by how often they were
// sampled: one object of 64 bytes is in the profile as 8,192.
func TestDiffSampled(t *testing.T) {
	objects := cost.Stack{Frames: []cost.Frame{{Func: "main.work"}}, Count: 8192, Value: 8192 * 64}
	s := &side{source: save(t, "allocs.pb.gz", pprof.Allocs, objects)}
	if err := s.read(&cli.Terminal{Err: t.Output()}); err != nil {
		t.Fatal(err)
	}
	if got := s.allocs[0].Stacks[0]; math.Abs(got.Count-1) > 0.001 || got.Value != objects.Value {
		t.Errorf("compared as %g stacks of %g bytes, want 1 of %g", got.Count, got.Value, objects.Value)
	}
}

// TestDiffSampledArm checks the same of an arm of a run, whose bytes are scaled to what
// the runtime counted, and the number of samples is not.
func TestDiffSampledArm(t *testing.T) {
	objects := cost.Stack{Frames: []cost.Frame{{Func: "main.work"}}, Count: 8192, Value: 8192 * 64}
	dir := t.TempDir()
	w, err := record.Create(filepath.Join(dir, "run"), record.Manifest{Study: study.Study{Name: "shop"}})
	if err != nil {
		t.Fatal(err)
	}
	c := record.Capture{Arm: "a", Workload: "all", Elapsed: time.Second, Requests: 1000, Bytes: 3e6, Objects: 40_000, Seen: []record.Seen{{Source: study.Pprof}}}
	var profiles []record.Profile
	for kind, name := range map[pprof.Kind]string{pprof.CPU: "cpu", pprof.Allocs: "allocs"} {
		var b bytes.Buffer
		if err := pprof.New(kind, time.Second, []cost.Stack{objects}).Write(&b); err != nil {
			t.Fatal(err)
		}
		profiles = append(profiles, record.Profile{Source: study.Pprof, Kind: name, Data: b.Bytes()})
	}
	if _, err := w.AppendCapture(c, profiles); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish("decided"); err != nil {
		t.Fatal(err)
	}
	s := &side{source: filepath.Join(dir, "run") + ":a"}
	if err := s.read(&cli.Terminal{Err: t.Output()}); err != nil {
		t.Fatal(err)
	}
	if got := s.allocs[0].Stacks[0]; math.Abs(got.Count-1) > 0.001 || math.Abs(got.Value-3e6) > 1 {
		t.Errorf("compared as %g stacks of %g bytes, want 1 of 3e6", got.Count, got.Value)
	}
}

// TestDiffSources refuses a comparison of what was sampled from outside with what a
// service's own profiler saw, before it captures anything.
func TestDiffSources(t *testing.T) {
	work := cost.Frame{Func: "main.work"}
	own := save(t, "own.pb.gz", pprof.CPU, cost.Stack{Frames: []cost.Frame{work}, Count: 90, Value: 9e8})
	outside := save(t, "outside.pb.gz", pprof.CPU, cost.Stack{Frames: []cost.Frame{{Func: "[kernel] tcp_sendmsg"}, work}, Count: 90, Value: 9e8},
		cost.Stack{Frames: []cost.Frame{work}, Count: 90, Value: 9e8})
	allocs := save(t, "allocs.pb.gz", pprof.Allocs, cost.Stack{Frames: []cost.Frame{work}, Count: 90, Value: 9e8})
	for _, tc := range []struct {
		a, b    string
		refused bool
	}{
		{own, outside, true}, {outside, own, true}, {"pid:4711", own, true}, {"pid:4711", "localhost:6060", true},
		{"http://localhost:6060", outside, true},
		{own, own, false}, {outside, outside, false}, {"pid:4711", outside, false}, {"pid:4711", "pid:4712", false},
		{"localhost:6060", own, false}, {"pid:4711", allocs, false},
	} {
		var both [2]*side
		for i, source := range []string{tc.a, tc.b} {
			both[i] = &side{source: source}
			if err := both[i].read(&cli.Terminal{Err: t.Output()}); err != nil {
				t.Fatal(err)
			}
		}
		err := checkSources(both[0], both[1])
		if refused := err != nil; refused != tc.refused {
			t.Errorf("%s with %s: %v, want an error: %t", tc.a, tc.b, err, tc.refused)
		}
	}
}

// TestDiffWarnsOfBytes warns of allocations that were captured once, and of an unknown
// time, also where the CPU profiles are in order.
func TestDiffWarnsOfBytes(t *testing.T) {
	stacks := []cost.Stack{{Frames: []cost.Frame{{Func: "main.work"}}, Count: 90, Value: 9e8}}
	captured := func(source string, allocs int) *side {
		s := &side{source: source}
		for range 5 {
			s.add(pprof.CPU, stacks, cost.Window{Duration: time.Second, Requests: 1000})
		}
		for range allocs {
			s.add(pprof.Allocs, stacks, cost.Window{})
		}
		return s
	}
	for _, tc := range []struct {
		allocs int
		want   []string
	}{
		{0, nil},
		{1, []string{"allocated: one capture a side: ", "allocated: neither requests nor durations are known"}},
		{5, []string{"allocated: neither requests nor durations are known"}},
	} {
		d, err := (&Command{Q: 0.05}).compare(captured("before", tc.allocs), captured("after", tc.allocs))
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Warnings) != len(tc.want) {
			t.Errorf("%d allocation profiles a side: warnings %q, want %d", tc.allocs, d.Warnings, len(tc.want))
			continue
		}
		for i, want := range tc.want {
			if !strings.HasPrefix(d.Warnings[i], want) {
				t.Errorf("%d allocation profiles a side: %q, want %q", tc.allocs, d.Warnings[i], want)
			}
		}
	}
}
