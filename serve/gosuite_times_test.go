package serve_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// mostTime is how long a test may take on the engine if it takes standard on
// http.Server. More means that the engine waits where http.Server does not.
func mostTime(standard time.Duration) time.Duration { return 3*standard + time.Second }

// compareTimes fails the tests that take much longer than on http.Server. It runs there
// only those that took longer than any may, and runs what seems too slow once more on
// the engine, since other work on the machine takes time as well.
func (s *goSuite) compareTimes(ctx context.Context, t *testing.T, run *suiteRun, results map[string]*suiteResult) {
	t.Helper()
	slow := slowTests(results, func(string) time.Duration { return 0 })
	if !s.ours() || len(slow) == 0 {
		return
	}
	standard := goSuite{goroot: s.goroot, root: s.root, dir: t.TempDir(), engine: "nethttp"}
	if err := standard.write(); err != nil {
		t.Fatal(err)
	}
	theirRun := suiteRun{binary: standard.build(t), dir: filepath.Join(standard.dir, "http"), perTest: run.perTest}
	theirs, err := theirRun.all(ctx, slow)
	if err != nil {
		t.Error(err)
		return
	}
	took := func(name string) time.Duration {
		if r := theirs[name]; r != nil {
			return r.took
		}
		return 0
	}
	suspects := slowTests(results, took)
	if len(suspects) == 0 {
		return
	}
	again, err := run.all(ctx, suspects)
	if err != nil {
		t.Error(err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(again)) {
		if r := again[name]; r.outcome == "PASS" && r.took > mostTime(took(name)) {
			t.Errorf("%s took %v, on http.Server %v: at most %v is allowed", name, r.took, took(name), mostTime(took(name)))
		}
	}
}

// slowTests returns the top-level tests of which any part took longer than it may.
func slowTests(results map[string]*suiteResult, standard func(name string) time.Duration) []string {
	slow := map[string]bool{}
	for name, r := range results {
		if r.outcome == "PASS" && r.took > mostTime(standard(name)) {
			top, _, _ := strings.Cut(name, "/")
			slow[top] = true
		}
	}
	return slices.Sorted(maps.Keys(slow))
}

func TestSlowTests(t *testing.T) {
	results := map[string]*suiteResult{
		"TestQuick":   {outcome: "PASS", took: time.Second},
		"TestSlow":    {outcome: "PASS", took: 1500 * time.Millisecond},
		"TestPart/h1": {outcome: "PASS", took: 9 * time.Second},
		"TestFailed":  {outcome: "FAIL", took: 9 * time.Second},
	}
	for _, tt := range []struct {
		standard time.Duration
		want     []string
	}{
		{0, []string{"TestPart", "TestSlow"}},
		{time.Second, []string{"TestPart"}},
		{3 * time.Second, nil},
	} {
		if got := slowTests(results, func(string) time.Duration { return tt.standard }); !slices.Equal(got, tt.want) {
			t.Errorf("where http.Server takes %v: got %v, want %v", tt.standard, got, tt.want)
		}
	}
}
