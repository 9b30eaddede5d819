package serve_test

import (
	"cmp"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGoSuite holds serve.Server to the tests that Go holds http.Server to: the
// ones of the installed Go, rewritten while the test runs so that their Server
// is ours. testdata/gosuite says how, and lists every test that is skipped.
//
// TARE_GOSUITE=nethttp runs the same tests on http.Server itself,
// TARE_GOSUITE=reuse on servers with Reuse. TARE_GOSUITE_RUN narrows them down to a regular expression, and TARE_GOSUITE_DIR names a
// directory in which to leave the rewritten module and the tests' whole output.
func TestGoSuite(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: building and running Go's own server tests takes minutes")
	}
	t.Parallel() // each is a process of its own, and waits
	suite := goSuite{
		goroot: goCommand(t, ".", "env", "GOROOT"),
		root:   filepath.Dir(goCommand(t, ".", "env", "GOMOD")),
		dir:    cmp.Or(os.Getenv("TARE_GOSUITE_DIR"), t.TempDir()),
		engine: cmp.Or(os.Getenv("TARE_GOSUITE"), "serve"),
		match:  os.Getenv("TARE_GOSUITE_RUN"),
	}
	suite.run(t, 75*time.Second)
}

// TestGoSuiteTransport holds the transport of serve/client to the tests that Go holds
// http.Transport to: they are run on http.Server, and Go's Transport hands what is for HTTP/1.1,
// with TLS and without, to ours. testdata/gosuite/transport.txt lists every test that is skipped.
//
// TARE_GOSUITE_RUN and TARE_GOSUITE_DIR are as in TestGoSuite.
func TestGoSuiteTransport(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: building and running Go's own transport tests takes a minute")
	}
	t.Parallel() // each is a process of its own, and waits
	suite := goSuite{
		goroot: goCommand(t, ".", "env", "GOROOT"),
		root:   filepath.Dir(goCommand(t, ".", "env", "GOMOD")),
		dir:    t.TempDir(),
		engine: "transport",
		match:  os.Getenv("TARE_GOSUITE_RUN"),
	}
	if dir := os.Getenv("TARE_GOSUITE_DIR"); dir != "" {
		suite.dir = filepath.Join(dir, "transport")
	}
	suite.run(t, 30*time.Second)
}

// run runs the suite, in which no test may take longer than perTest.
func (s *goSuite) run(t *testing.T, perTest time.Duration) {
	t.Helper()
	var err error
	if s.skips, err = s.readSkips(); err != nil {
		t.Fatal(err)
	}
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	binary := s.build(t)

	names := s.named(t, binary)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	run := suiteRun{binary: binary, dir: filepath.Join(s.dir, "http"), perTest: perTest}
	results, err := run.all(ctx, names)
	if err != nil {
		t.Error(err)
	}
	again(ctx, t, &run, results)
	s.compareTimes(ctx, t, &run, results)
	if os.Getenv("TARE_GOSUITE_DIR") != "" {
		if err := os.WriteFile(filepath.Join(s.dir, "output.txt"), []byte(run.output.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	s.judge(t, names, results)
}

// readSkips reads the rows that are for the engine. Of the server's, those that the transport's
// tests need say what cannot be compiled, and what skips itself.
func (s *goSuite) readSkips() ([]suiteSkip, error) {
	rows, err := readSuiteSkips("testdata/gosuite/skips.txt")
	if err != nil || s.engine != "transport" {
		return slices.DeleteFunc(rows, func(row suiteSkip) bool { return !s.skipped(row) }), err
	}
	rows = slices.DeleteFunc(rows, func(row suiteSkip) bool { return row.kind != "white-box" && row.kind != "self" })
	own, err := readSuiteSkips("testdata/gosuite/transport.txt")
	return append(rows, own...), err
}

// again repeats, up to twice, what failed: Go's tests depend on how long things
// take, and fail on a busy machine at times with http.Server too. A data race is
// no such failure.
func again(ctx context.Context, t *testing.T, run *suiteRun, results map[string]*suiteResult) {
	t.Helper()
	for range 2 {
		var failed []string
		for _, name := range slices.Sorted(maps.Keys(results)) {
			if !strings.Contains(name, "/") && results[name].outcome == "FAIL" && !raced(results, name) {
				failed = append(failed, name)
			}
		}
		if len(failed) == 0 {
			return
		}
		second, err := run.all(ctx, failed)
		if err != nil {
			return // the first outcome stands
		}
		for _, name := range failed {
			if second[name].outcome == "PASS" {
				t.Logf("%s failed and passed when run again:\n%s", name, said(results, name))
			}
		}
		maps.Copy(results, second)
	}
}

func raced(results map[string]*suiteResult, test string) bool {
	return strings.Contains(said(results, test), "DATA RACE")
}

// said joins what the test and its subtests printed, those that failed.
func said(results map[string]*suiteResult, test string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if r := results[name]; (name == test || strings.HasPrefix(name, test+"/")) && r.outcome == "FAIL" {
			lines = append(lines, r.lines...)
		}
	}
	return strings.Join(lines, "\n")
}

// named lists the suite's tests, those that are asked for.
func (s *goSuite) named(t *testing.T, binary string) []string {
	t.Helper()
	match, err := regexp.Compile(s.match)
	if err != nil {
		t.Fatalf("reading TARE_GOSUITE_RUN: %v", err)
	}
	out := suiteOutput(t, binary, "-test.list=.*")
	var about map[string]bool // nil: all are asked for
	if s.engine == "transport" {
		about = s.declared(t, "transport_test.go", "clientserver_test.go", "client_test.go")
	}
	names := slices.DeleteFunc(strings.Fields(out), func(name string) bool {
		return !strings.HasPrefix(name, "Test") || !match.MatchString(name) || about != nil && !about[name]
	})
	if len(names) == 0 {
		t.Fatalf("no test of the suite matches %q", s.match)
	}
	return names
}

// declared are the functions of some of Go's files.
func (s *goSuite) declared(t *testing.T, files ...string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), s.standard(file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				all[fn.Name.Name] = true
			}
		}
	}
	return all
}

// judge reports every failure, every hang, every skip that has no row and every
// row that skips nothing, then what was counted.
func (s *goSuite) judge(t *testing.T, names []string, results map[string]*suiteResult) {
	t.Helper()
	missed := map[string]suiteSkip{}
	for _, row := range s.skips {
		if top, _, _ := strings.Cut(row.test, "/"); slices.Contains(names, top) {
			missed[row.test] = row
		} else if s.match == "" && s.engine != "transport" {
			t.Errorf("%s: there is no %s", row.place, row.test)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		switch r := results[name]; r.outcome {
		case "PASS":
		case "SKIP":
			if !s.listed(name) {
				t.Errorf("%s was skipped, and no row says so:\n%s", name, r.text())
			}
			delete(missed, name)
		case "FAIL":
			if !failsBelow(results, name) {
				t.Errorf("%s failed:\n%s", name, r.text())
			}
		default:
			t.Errorf("%s: %s\n%s", name, r.outcome, r.text())
		}
	}
	left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return results[name] != nil })
	if len(left) > 0 {
		t.Errorf("%d tests were not run: %s", len(left), strings.Join(left, " "))
	}
	for _, row := range missed {
		if row.kind != "self" {
			t.Errorf("%s: %s was not skipped", row.place, row.test)
		}
	}
	s.count(t, results)
}

func (s *goSuite) listed(name string) bool {
	return slices.ContainsFunc(s.skips, func(row suiteSkip) bool { return row.test == name })
}

// failsBelow reports whether a subtest failed, which then is the one to report.
func failsBelow(results map[string]*suiteResult, name string) bool {
	for other, r := range results {
		if strings.HasPrefix(other, name+"/") && r.outcome != "PASS" && r.outcome != "SKIP" {
			return true
		}
	}
	return false
}

// count logs how many tests ended how, in all and by the mode they ran in.
func (s *goSuite) count(t *testing.T, results map[string]*suiteResult) {
	t.Helper()
	modes := []string{"h1", "https1", "h2", "h2unencrypted"}
	counts := map[string]map[string]int{}
	add := func(what, outcome string) {
		if outcome != "PASS" && outcome != "SKIP" && outcome != "FAIL" {
			outcome = "HANG"
		}
		if counts[what] == nil {
			counts[what] = map[string]int{}
		}
		counts[what][outcome]++
	}
	for name, r := range results {
		_, below, _ := strings.Cut(name, "/")
		if below == "" {
			add("tests", r.outcome)
		}
		for part := range strings.SplitSeq(below, "/") {
			if slices.Contains(modes, part) && strings.HasSuffix(name, part) {
				add("in mode "+part, r.outcome)
			}
		}
	}
	t.Logf("Go's own tests (%s) on %s:", runtime.Version(), s.engine)
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		c := counts[what]
		t.Logf("%-22s %4d passed, %3d skipped, %3d failed, %3d hung or crashed", what, c["PASS"], c["SKIP"], c["FAIL"], c["HANG"])
	}
	kinds := map[string]int{}
	switch {
	case s.ours():
		t.Logf("lines changed for deliberate differences: %d", len(suiteDifferences))
	case s.engine == "transport":
		t.Logf("lines changed for deliberate differences: %d", len(transportDifferences))
	}
	for _, row := range s.skips {
		kinds[row.kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("rows of skipped tests: %-12s %d", kind, kinds[kind])
	}
}
