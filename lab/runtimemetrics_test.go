package lab_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// inside runs a study of two arms of this module for one block, and returns the
// run and the last valid trial of each arm.
func inside(t *testing.T, s *study.Study) (*record.Run, map[string]record.Trial) {
	t.Helper()
	s.Name, s.Control = "inside", s.Arms[0].Name
	s.Primary = study.Primary{Metric: "cpu_per_request", Workload: s.Workloads[0].Name}
	s.Trial = study.Trial{WarmUp: 100 * time.Millisecond, Measure: time.Second, Slice: 100 * time.Millisecond}
	run, err := lab.Run(t.Context(), lab.Options{
		Study: s, Builder: moduleArms(), Dir: filepath.Join(t.TempDir(), "run"), Blocks: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	trials := map[string]record.Trial{}
	for _, tr := range run.Trials {
		trials[tr.Arm] = tr // an invalid one tells of its inside, too
	}
	return run, trials
}

func workload(path string) study.Workload {
	return study.Workload{
		Name: "w", Schedule: "closed", Connections: 4, Lines: true,
		Targets: []study.Target{{Path: path, Verify: study.Verify{Status: 200}}},
	}
}

// Leaking goroutines are counted, and the line that they stand at is told; so is
// the line that allocates.
func TestTellsLeaks(t *testing.T) {
	w := workload("/")
	w.Live = true
	_, trials := inside(t, &study.Study{
		Arms: []study.Arm{
			{Name: "none", Go: "./arms/leaks", Args: []string{"--leak", "none"}},
			{Name: "select", Go: "./arms/leaks", Args: []string{"--leak", "select"}},
			{Name: "escape", Go: "./arms/leaks", Args: []string{"--leak", "escape"}},
		},
		Workloads: []study.Workload{w},
	})
	for name, c := range map[string]struct {
		leastGrowth, mostGrowth float64
		goroutines, allocates   string
	}{
		"none":   {-100, 100, "none gained", ""},
		"select": {900, 1100, "main.endless.func1 goroutines.go:", ""},
		"escape": {-100, 100, "none gained", "main.escapes escape.go:"},
	} {
		tr := trials[name]
		growth, ok := tr.Metrics["goroutine_growth"]
		if tr.Requests < 200 {
			t.Logf("%s: %d requests only, of a machine that is busy otherwise: too few to look at", name, tr.Requests)
			continue
		}
		if !ok || growth < c.leastGrowth || growth > c.mostGrowth {
			t.Errorf("%s: %v goroutines gained per 1,000 requests, want %v to %v", name, growth, c.leastGrowth, c.mostGrowth)
		}
		if got := tr.Facts["goroutines at"]; !strings.HasPrefix(got, c.goroutines) {
			t.Errorf("%s: goroutines at %q, want %q", name, got, c.goroutines)
		}
		if got := tr.Facts["allocates at"]; !strings.HasPrefix(got, c.allocates) {
			t.Errorf("%s: allocates at %q, want %q", name, got, c.allocates)
		}
		for _, metric := range []string{"heap_live", "stack_live", "stack_memory"} {
			if tr.Metrics[metric] <= 0 {
				t.Errorf("%s: %s is %v, want some bytes", name, metric, tr.Metrics[metric])
			}
		}
	}
	none, leaky := trials["none"].Metrics["stack_memory"], trials["select"].Metrics["stack_memory"]
	if trials["none"].Requests >= 200 && trials["select"].Requests >= 200 && leaky <= none {
		t.Errorf("memory of stacks: %v where goroutines leak and %v where not", leaky, none)
	}
}

// The arm's own code may be of a module without a dot in its name, and may have been
// built with this machine's paths.
func TestOwnCode(t *testing.T) {
	for _, own := range []cost.Frame{
		{Func: "shop/orders.List", File: "shop/orders/list.go", Line: 7},
		{Func: "example.com/shop.List", File: "example.com/shop@v1.0.0/list.go", Line: 7},
		{Func: "example.com/shop.List", File: "/home/me/shop/list.go", Line: 7},
		{Func: "main.list", File: "./list.go", Line: 7},
	} {
		s := cost.Stack{Value: 1, Frames: []cost.Frame{
			{Func: "bytes.growSlice", File: "bytes/buffer.go", Line: 249},
			{Func: "github.com/tarehq/tare/arms/arm.(*writer).Write", File: "github.com/tarehq/tare/arms/arm/handler.go", Line: 124},
			own,
			{Func: "net/http.(*conn).serve", File: "net/http/server.go", Line: 2050},
		}}
		if got, want := lab.AllocatesAt([]cost.Stack{s}), own.Func+" list.go:7"; got != want {
			t.Errorf("%+v: allocates at %q, want %q", own, got, want)
		}
	}
}

// What a pool was asked for is told by the arm; one without a pool has no such
// metric.
func TestTellsPools(t *testing.T) {
	_, trials := inside(t, &study.Study{
		Arms: []study.Arm{
			{Name: "pooled", Go: "./arms/pool", Args: []string{"--buffers", "pooled"}},
			{Name: "unreturned", Go: "./arms/pool", Args: []string{"--buffers", "unreturned"}},
			{Name: "new", Go: "./arms/pool", Args: []string{"--buffers", "new"}},
		},
		Workloads: []study.Workload{workload("/small")},
	})
	if m := trials["unreturned"].Metrics; m["pool_misses"] != 1 || m["pool_returns"] != 0 {
		t.Errorf("unreturned: misses %v and returns %v, want 1 and 0", m["pool_misses"], m["pool_returns"])
	}
	if m := trials["pooled"].Metrics; m["pool_misses"] > .5 || m["pool_returns"] < .9 {
		t.Errorf("pooled: misses %v and returns %v, want few and about 1", m["pool_misses"], m["pool_returns"])
	}
	if m, ok := trials["new"].Metrics["pool_misses"]; ok {
		t.Errorf("new: misses %v, want none counted", m)
	}
	if got, want := trials["unreturned"].Facts["allocates at"], "main.(*unreturned).make buffers.go:"; !strings.HasPrefix(got, want) {
		t.Errorf("unreturned: allocates at %q, want %q", got, want)
	}
}

// Machine code is read out of each program once, and every trial tells how its
// functions call.
func TestTellsCalls(t *testing.T) {
	w := workload("/")
	w.Lines, w.Loop, w.Counters = false, 10*time.Millisecond, true
	run, trials := inside(t, &study.Study{
		Arms: []study.Arm{
			{Name: "interface", Go: "./arms/dispatch", Args: []string{"--by", "interface"}},
			{Name: "type", Go: "./arms/dispatch", Args: []string{"--by", "type"}},
			{Name: "profiled", Go: "./arms/dispatch", Build: []string{"-pgo=calls.pgo"}},
		},
		Workloads:   []study.Workload{w},
		Disassemble: []string{"main.(*open).ServeHTTP", "main.(*closed).ServeHTTP"},
	})
	want := map[string]string{"main.(*open).ServeHTTP": "indirect", "main.(*closed).ServeHTTP": "direct"}
	for name, tr := range trials {
		for f, calls := range want {
			if got := tr.Facts["calls of "+f]; got != calls {
				t.Errorf("%s: calls of %s are %q, want %q", name, f, got, calls)
			}
		}
	}
	if len(run.Manifest.Code) != 4 {
		t.Fatalf("got %d listings, want two of each of two programs", len(run.Manifest.Code))
	}
	var plain, profiled *record.Code
	for i := range run.Manifest.Code {
		switch c := &run.Manifest.Code[i]; {
		case c.Func != "main.(*open).ServeHTTP":
		case len(c.Arms) == 2:
			plain = c
		default:
			profiled = c
		}
	}
	switch {
	case plain == nil || profiled == nil:
		t.Errorf("listings: got %+v, want one of two arms and one of the third", run.Manifest.Code)
	case tests(plain) || !tests(profiled):
		t.Errorf("a test of the callee's type: without a profile %t, with one %t, want it with one only", tests(plain), tests(profiled))
	}
	hits, counted := trials["type"].Metrics["loop_cache_hits"]
	missing := strings.Contains(strings.Join(run.Manifest.Warnings, "\n"), "cache hits were not counted")
	if counted == missing || counted && (hits <= 0 || hits > 1) {
		t.Errorf("cache hits: %v, counted %t, said to be missing %t", hits, counted, missing)
	}
}

// tests reports whether code compares a table of methods with a known one.
func tests(c *record.Code) bool {
	for _, i := range c.Instructions {
		if strings.Contains(i.Text, "go:itab") {
			return true
		}
	}
	return false
}
