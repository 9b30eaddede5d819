// Package historytest makes folders of runs for tests.
package historytest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// Run is a run to be made. The zero value of a field means what stands beside it.
type Run struct {
	Study   string   // "release"
	Title   string   // none
	Day     int      // of the year 2026 from 1; 0 means 1
	Factor  float64  // of the CPU that the first arm takes to the control's; 0 means 1.2
	Build   string   // of the control's program; "c0"
	Machine string   // "a processor"
	Arms    []string // "api"
	Commit  string   // of the first arm, which is then called api@COMMIT
	Blocks  int      // 12
	Floor   float64  // calibrated noise floor of its primary metric, relative; 0 = not known
	Unended bool     // it goes on
	Quick   bool
	Claims  []study.Claim // of its study

	Profiled float64 // how much the first arm's middleware takes, in ns a request; 0 = nothing was profiled
}

// Write makes a run's folder below root and returns its name. Times are other ones on each
// day, the ratios are not.
func Write(t testing.TB, root string, r Run) (name string) {
	t.Helper()
	began := time.Date(2026, 1, max(r.Day, 1), 15, 0, 0, 0, time.UTC)
	s := study.Study{Name: cmp.Or(r.Study, "release"), Title: r.Title, Control: "base", Threshold: 0.01, Arms: []study.Arm{{Name: "base"}},
		Workloads: []study.Workload{{Name: "load", Schedule: "closed"}}, Primary: study.Primary{Metric: "cpu_per_request", Workload: "load"}, Claims: r.Claims}
	if r.Arms = slices.Clone(r.Arms); len(r.Arms) == 0 {
		r.Arms = []string{"api"}
	}
	if r.Commit != "" {
		r.Arms[0] += "@" + r.Commit
	}
	programs := map[string]record.Program{"base": {BuildID: cmp.Or(r.Build, "c0")}}
	for i, arm := range r.Arms {
		s.Arms = append(s.Arms, study.Arm{Name: arm})
		programs[arm] = record.Program{BuildID: fmt.Sprintf("arm%d", i)}
	}
	name = began.Format("20060102-150405-") + s.Name
	m := record.Manifest{Schema: record.Schema, ID: name, Study: s, Seed: 7, Started: began, Outcome: "decided", Ended: began.Add(time.Minute), Quick: r.Quick,
		Programs: programs, Command: []string{"tare", "run", s.Name}, Tare: "v1", Env: []record.Fact{{Name: "cpu", Value: cmp.Or(r.Machine, "a processor")}}}
	if r.Floor > 0 {
		m.Floor, m.FloorN = map[string]float64{"cpu_per_request": math.Log1p(r.Floor)}, 1
	}
	if r.Unended {
		m.Outcome, m.Ended = "", time.Time{}
	}
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "manifest.json"), encode(t, m))
	var lines []byte
	for _, trial := range r.trials() {
		lines = append(append(lines, encode(t, trial)...), '\n')
	}
	write(t, filepath.Join(dir, "trials.jsonl"), lines)
	if r.Profiled > 0 {
		r.profile(t, dir)
	}
	return name
}

// Append adds the trials of one more block to a run.
func Append(t testing.TB, dir string, block int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "trials.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, arm := range []string{"base", "api"} {
		line := encode(t, record.Trial{Seq: 2*block + i, Block: block, Arm: arm, Workload: "load", Requests: 20_000, Steady: true, Elapsed: time.Second,
			Metrics: map[string]float64{"cpu_per_request": 30_000 + 6000*float64(i)}})
		if _, err := f.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
}

// End ends a run that goes on.
func End(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, "manifest.json")
	data, err := os.ReadFile(path)
	var m record.Manifest
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.Outcome, m.Ended = "decided", m.Started.Add(time.Minute)
	write(t, path, encode(t, m))
}

func (r *Run) trials() (all []record.Trial) {
	rng := rand.New(rand.NewPCG(3, uint64(r.Day)))
	speed := math.Exp(rng.NormFloat64())
	for block := range cmp.Or(r.Blocks, 12) {
		for i := range len(r.Arms) + 1 {
			arm, factor := "base", 1.0
			switch {
			case i == 1:
				arm, factor = r.Arms[0], cmp.Or(r.Factor, 1.2)
			case i > 1:
				arm, factor = r.Arms[i-1], 1.2+0.1*float64(i)
			}
			all = append(all, record.Trial{Seq: len(all), Block: block, Arm: arm, Workload: "load", Requests: 20_000, Steady: true, Elapsed: time.Second,
				Metrics: map[string]float64{"cpu_per_request": 30_000 * speed * factor * math.Exp(0.003*rng.NormFloat64()), "errors": 0}})
		}
	}
	return all
}

// rounds is how many captures there are of an arm.
const rounds = 5

// profile adds captures of the first arm.
func (r *Run) profile(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "profiles"), 0o755); err != nil {
		t.Fatal(err)
	}
	var lines []byte
	for i := range rounds {
		const requests = 1000
		rest := []cost.Frame{{Func: "net/http.serverHandler.ServeHTTP"}, {Func: "net/http.(*conn).serve"}}
		auth := r.Profiled * requests * (1 + 0.01*float64(i))
		stacks := []cost.Stack{
			{Count: 200, Value: auth, Frames: append([]cost.Frame{{Func: "example.org/auth.(*Guard).ServeHTTP"}}, rest...)},
			{Count: 100, Value: 2e7, Frames: append([]cost.Frame{{Func: "example.org/shop.(*cart).ServeHTTP"}, {Func: "example.org/auth.(*Guard).ServeHTTP"}}, rest...)},
		}
		var profile bytes.Buffer
		if err := pprof.New(pprof.CPU, time.Second, stacks).Write(&profile); err != nil {
			t.Fatal(err)
		}
		file := fmt.Sprintf("%06d-pprof-cpu.pb.gz", i)
		write(t, filepath.Join(dir, "profiles", file), profile.Bytes())
		lines = append(append(lines, encode(t, record.Capture{Seq: i, Round: i, Arm: r.Arms[0], Workload: "load", Sources: []study.Source{study.Pprof}, Elapsed: time.Second,
			Requests: requests, CPU: time.Duration(auth + 2e7), Seen: []record.Seen{{Source: study.Pprof, Files: map[string]string{"cpu": file}}}})...), '\n')
	}
	write(t, filepath.Join(dir, "captures.jsonl"), lines)
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
