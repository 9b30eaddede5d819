package record_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/hist"
)

var day = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func manifest() record.Manifest {
	x, published := 3.0, 159_000.0
	return record.Manifest{
		ID: "20260102-150405-nesting",
		Study: study.Study{
			Name: "nesting", Title: "Nested middleware", Control: "none", Twin: true, Threshold: 0.01,
			Arms: []study.Arm{{Name: "none", Go: "./arms/nesting"}, {Name: "three", Go: "./arms/nesting", Args: []string{"--layers", "three"}, X: &x}},
			Workloads: []study.Workload{{
				Name: "half", Schedule: "constant", Rate: study.Rate{Share: 0.5}, Timeout: 10 * time.Second,
				Targets: []study.Target{{Path: "/", Header: map[string]string{"X-Tare-Key": "v"}}},
			}},
			Primary: study.Primary{Metric: "cpu_per_request", Workload: "half"},
			Trial:   study.Trial{Measure: 2 * time.Second},
			Claims:  []study.Claim{{ID: "P1.nesting", Checks: []study.Check{{Kind: study.Effect, Arm: "three", PublishedArm: &published}}}},
		},
		Seed: math.MaxUint64, Started: day, Command: []string{"tare", "run", "nesting"},
		Programs: map[string]record.Program{"none": {Path: "nesting", BuildID: "abc", Go: "go1.26.0", Modules: map[string]string{"a.b/C": "v1"}}},
		LeftOut:  map[string]string{"nginx": "not installed"},
		Rates:    map[string]float64{"half": 1234.5},
		Pinning:  record.Pinning{Instrument: []int{0}, Specimen: []int{1}, Disjoint: true},
		Env:      []record.Fact{{Name: "governor", Value: "powersave", Verdict: "disturbs", Remedy: "set it to performance"}},
		Floor:    map[string]float64{"cpu_per_request": 0.02}, FloorN: 8,
	}
}

func trial(seq int) record.Trial {
	return record.Trial{
		Seq: seq, Block: seq / 2, Arm: "none", Workload: "half", Start: day, Elapsed: 2 * time.Second,
		Requests: 20_000, Metrics: map[string]float64{"cpu_per_request": 12_345.678, "errors": 0},
		Facts: map[string]string{"go": "go1.26"}, Steady: true,
		Series: []record.Slice{{AtMs: 0, Answered: 10_000, P50: 51_200, P99: 99_999}},
	}
}

func create(t *testing.T) (*record.Writer, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "runs", "a")
	w, err := record.Create(dir, manifest())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, dir
}

func appendTrials(t *testing.T, w *record.Writer, from, n int) {
	t.Helper()
	for i := range n {
		if err := w.Append(trial(from+i), nil); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, dir string) *record.Run {
	t.Helper()
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	w, dir := create(t)
	h := &record.Histograms{Response: hist.New(), Service: hist.New(), Operations: map[string]*hist.Hist{"order": hist.New(), "log.in": hist.New()}}
	h.Operations["order"].Record(70_000)
	for i := range int64(1000) {
		h.Response.Record(50_000 + i*100)
		h.Service.Record(40_000 + i*100)
	}
	first, second := trial(0), trial(1)
	second.Invalid, second.Twin, second.Block = []string{"generator saturated"}, true, -1
	if err := w.Append(first, h); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(second, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Update(func(m *record.Manifest) { m.Capacity = map[string]float64{"none": 50_000} }); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish("decided"); err != nil {
		t.Fatal(err)
	}

	r := open(t, dir)
	want := manifest()
	want.Schema, want.Outcome, want.Ended = record.Schema, "decided", r.Manifest.Ended
	want.Capacity = map[string]float64{"none": 50_000}
	if r.Manifest.Ended.IsZero() || !reflect.DeepEqual(r.Manifest, want) {
		t.Errorf("manifest: got %+v, want %+v", r.Manifest, want)
	}
	first.Hist = "000000"
	if want := []record.Trial{first, second}; !reflect.DeepEqual(r.Trials, want) {
		t.Errorf("trials: got %+v, want %+v", r.Trials, want)
	}
	got, err := r.Histograms(r.Trials[0])
	if err != nil {
		t.Fatal(err)
	}
	if !got.Response.Equal(h.Response) || !got.Service.Equal(h.Service) || len(got.Operations) != 2 || !got.Operations["order"].Equal(h.Operations["order"]) {
		t.Errorf("histograms read back differ from those written")
	}
	if got, err := r.Histograms(r.Trials[1]); err != nil || got.Response != nil || got.Service != nil {
		t.Errorf("histograms of a trial without: got %v, %v, want none", got, err)
	}
}

// TestFieldNames holds the format's promise that every field of ours is
// lower_snake; keys that are a user's own (arm names, headers) are left alone.
func TestFieldNames(t *testing.T) {
	w, dir := create(t)
	appendTrials(t, w, 0, 1)
	own := map[string]bool{"X-Tare-Key": true, "a.b/C": true}
	key := regexp.MustCompile(`"([^"]*)":`)
	for _, name := range []string{"manifest.json", "trials.jsonl"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range key.FindAllStringSubmatch(string(data), -1) {
			if m[1] != strings.ToLower(m[1]) && !own[m[1]] {
				t.Errorf("%s: field %q is not lower_snake", name, m[1])
			}
		}
	}
}

func TestCreateRefusesAnExistingFolder(t *testing.T) {
	_, dir := create(t)
	if _, err := record.Create(dir, manifest()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating %s again: got %v, want fs.ErrExist", dir, err)
	}
}

// A run that cannot begin, as on a full disk, leaves no folder that looks like one.
func TestCreateLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "a")
	m := manifest()
	m.Floor = map[string]float64{"cpu_per_request": math.NaN()} // which JSON cannot hold
	if _, err := record.Create(dir, m); err == nil {
		t.Fatal("a manifest that cannot be written: got no error")
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v), want nothing", left, err)
	}
}

func TestAppendLeavesOutWhatIsNoNumber(t *testing.T) {
	w, dir := create(t)
	in := trial(0)
	in.Metrics["gc_cpu"], in.Metrics["startup"] = math.NaN(), math.Inf(1)
	if err := w.Append(in, nil); err != nil {
		t.Fatal(err)
	}
	if len(in.Metrics) != 4 {
		t.Errorf("the caller's metrics were changed: %v", in.Metrics)
	}
	got := open(t, dir).Trials[0]
	if want := trial(0).Metrics; !reflect.DeepEqual(got.Metrics, want) {
		t.Errorf("metrics: got %v, want %v", got.Metrics, want)
	}
	if want := []string{"metric gc_cpu excluded: it was NaN", "metric startup excluded: it was +Inf"}; !reflect.DeepEqual(got.Warnings, want) {
		t.Errorf("warnings: got %q, want %q", got.Warnings, want)
	}
}

// A trial is not on disk that went into a file which nobody finds any more.
func TestAppendRefusesWhatIsReplaced(t *testing.T) {
	w, dir := create(t)
	appendTrials(t, w, 0, 1)
	path := filepath.Join(dir, "trials.jsonl")
	if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(trial(1), nil); err == nil || !strings.Contains(err.Error(), "another file by now") {
		t.Errorf("got error %v, want that it is another file", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(trial(1), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want that it is not there", err)
	}
}

func TestAppendRefusesAFallingNumber(t *testing.T) {
	w, dir := create(t)
	appendTrials(t, w, 0, 2)
	if err := w.Append(trial(1), nil); err == nil {
		t.Error("appending trial 1 twice: got no error")
	}
	if got := len(open(t, dir).Trials); got != 2 {
		t.Errorf("trials after a refusal: got %d, want 2", got)
	}
}

func TestOpenDamaged(t *testing.T) {
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{\"seq\":%d,\"block\":0,\"arm\":\"none\",\"workload\":\"half\",\"requests\":1,\"steady\":true}\n", i)
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, trials string
		want         int    // trials read
		warning, err string // substrings; "" = none
	}{
		{"empty", "", 0, "", ""},
		{"whole", lines(3), 3, "", ""},
		{"torn in the middle of the last line", lines(2) + `{"seq":2,"blo`, 2, "trials.jsonl:3: the last line is torn", ""},
		{"last line without its end", strings.TrimSuffix(lines(3), "\n"), 2, "trials.jsonl:3:", ""},
		{"last line of zeros", lines(2) + "\x00\x00\x00\n", 2, "trials.jsonl:3:", ""},
		{"only a torn line", `{"seq`, 0, "trials.jsonl:1:", ""},
		{"corrupt in the middle", lines(1) + "{]\n" + lines(3), 0, "", "trials.jsonl:2: "},
		{"blank line in the middle", lines(1) + "\n" + lines(3), 0, "", "trials.jsonl:2: "},
		{"wrong type in the middle", `{"seq":"x"}` + "\n" + lines(2), 0, "", "trials.jsonl:1: "},
		{"a block that cannot be", lines(1) + `{"seq":1,"block":9999999999999999}` + "\n" + lines(3), 0, "", "trials.jsonl:2: trial 1 is of block 9999999999999999"},
		{"a block before the pilot", `{"seq":0,"block":-2}` + "\n" + lines(3), 0, "", "trials.jsonl:1: trial 0 is of block -2"},
		{"numbers fall", lines(2) + lines(2), 0, "", "trials.jsonl:3: trial 0 follows trial 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, dir := create(t)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "trials.jsonl"), []byte(tc.trials), 0o666); err != nil {
				t.Fatal(err)
			}
			r, err := record.Open(dir)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("opening %q: got error %v, want %q", tc.trials, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("opening %q: %v", tc.trials, err)
			}
			if len(r.Trials) != tc.want {
				t.Errorf("opening %q: got %d trials, want %d", tc.trials, len(r.Trials), tc.want)
			}
			if got := fmt.Sprint(r.Warnings); (tc.warning == "") != (len(r.Warnings) == 0) || !strings.Contains(got, tc.warning) {
				t.Errorf("opening %q: got warnings %s, want %q", tc.trials, got, tc.warning)
			}
			resumed(t, dir, tc.want)
		})
	}
}

// resumed takes up a run that holds n whole trials and checks that it can be
// appended to and is then without blemish.
func resumed(t *testing.T, dir string, n int) {
	t.Helper()
	w, r, err := record.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Trials) != n {
		t.Errorf("resuming: got %d trials, want %d", len(r.Trials), n)
	}
	appendTrials(t, w, n, 2)
	if err := w.Finish("cap"); err != nil {
		t.Fatal(err)
	}
	after := open(t, dir)
	if len(after.Trials) != n+2 || len(after.Warnings) != 0 {
		t.Errorf("after resuming: got %d trials and warnings %v, want %d and none", len(after.Trials), after.Warnings, n+2)
	}
}

func TestOpenRefusesWhatIsNoRunOfThisLayout(t *testing.T) {
	for _, tc := range []struct{ name, manifest, want string }{
		{"newer", `{"schema": 2, "seed": "a word by then"}`, "version 2, this tare reads up to 1"},
		{"no version", `{"name": "left-pad"}`, "no layout version"},
		{"no JSON", "{\n\"schema\": 1,\n]", "manifest.json:3: "},
		{"wrong type", "{\n\"schema\": 1,\n\"seed\": \"x\"}", "manifest.json:3: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(tc.manifest), 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := record.Open(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("opening %s: got %v, want %q", tc.manifest, err, tc.want)
			}
		})
	}
	if _, err := record.Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening an empty folder: got %v, want fs.ErrNotExist", err)
	}
}

// TestOpenRefusesWhatIsNoFile puts a device without end in the place of each
// file.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("no /dev/zero here")
	}
	for _, name := range []string{"manifest.json", "trials.jsonl", "hist/000000.hlog"} {
		w, dir := create(t)
		h := &record.Histograms{Response: hist.New()}
		if err := errors.Join(w.Append(trial(0), h), w.Close(), os.Remove(filepath.Join(dir, name)),
			os.Symlink("/dev/zero", filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		run, err := record.Open(dir)
		if err == nil {
			_, err = run.Histograms(run.Trials[0])
		}
		if err == nil || !strings.Contains(err.Error(), name+" is no regular file") {
			t.Errorf("%s is a device: got %v", name, err)
		}
	}
}

func TestHistogramsStayWithinTheRun(t *testing.T) {
	_, dir := create(t)
	r := open(t, dir)
	for _, name := range []string{"../manifest", "/etc/passwd", "..", "a/b", "missing"} {
		if _, err := r.Histograms(record.Trial{Hist: name}); err == nil {
			t.Errorf("reading histograms %q: got no error", name)
		}
	}
}

func TestLockKeepsASecondWriterOut(t *testing.T) {
	w, dir := create(t)
	if _, _, err := record.Resume(dir); err == nil || !strings.Contains(err.Error(), "another process is writing") {
		t.Errorf("resuming a run being written: got %v", err)
	}
	if err := w.Finish("interrupted"); err != nil {
		t.Fatal(err)
	}
	w, _, err := record.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if got := open(t, dir).Manifest.Outcome; got != "interrupted" {
		t.Errorf("outcome once resumed: got %q, want it kept until the first trial", got)
	}
	appendTrials(t, w, 0, 1)
	if m := open(t, dir).Manifest; m.Outcome != "" || !m.Ended.IsZero() {
		t.Errorf("outcome with a trial more: got %q, ended %v, want neither", m.Outcome, m.Ended)
	}
}

// TestTook has runs of which one was killed and one had ended gone on with, months later. They
// took as long as they were under way.
func TestTook(t *testing.T) {
	budget := func(w *record.Writer) error {
		return errors.Join(w.Update(func(m *record.Manifest) { m.Outcome, m.Ended = "budget", day.Add(time.Minute) }), w.Close())
	}
	for _, tc := range []struct {
		name string
		end  func(*record.Writer) error
		more int // trials after that
		want time.Duration
	}{
		{"killed after its trials", (*record.Writer).Close, 1, 2 * time.Second},
		{"ended by its budget", budget, 1, time.Minute},
		{"gone on with for nothing", budget, 0, time.Minute},
	} {
		w, dir := create(t)
		appendTrials(t, w, 0, 2)
		if m := open(t, dir).Manifest; m.Took() != 0 {
			t.Errorf("%s: under way it took %s, want 0", tc.name, m.Took())
		}
		if err := tc.end(w); err != nil {
			t.Fatal(err)
		}
		w, _, err := record.Resume(dir)
		if err != nil {
			t.Fatal(err)
		}
		appendTrials(t, w, 2, tc.more)
		if err := w.Finish("cap"); err != nil {
			t.Fatal(err)
		}
		m := open(t, dir).Manifest
		if got := m.Took(); got < tc.want || got > tc.want+30*time.Second {
			t.Errorf("%s: it took %s, %s of it idle, want %s and the moment of this test", tc.name, got, m.Idle, tc.want)
		}
	}
}

func TestList(t *testing.T) {
	root := t.TempDir()
	for i, id := range []string{"old", "new"} {
		m := manifest()
		m.ID, m.Started = id, day.AddDate(0, 0, i)
		w, err := record.Create(filepath.Join(root, id), m)
		if err != nil {
			t.Fatal(err)
		}
		appendTrials(t, w, 0, i+1)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for path, data := range map[string]string{"broken/manifest.json": "{", "empty/x": "", "file": ""} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(data), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := record.List(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].Dir != filepath.Join(root, "new") || got[0].Trials != 2 || got[1].Dir != filepath.Join(root, "old") || got[2].Err == nil {
		t.Errorf("got %+v, want new (2 trials), old, and broken with its error", got)
	}
	if got, err := record.List(filepath.Join(root, "missing")); err != nil || got != nil {
		t.Errorf("listing a missing root: got %v, %v, want none", got, err)
	}
}
