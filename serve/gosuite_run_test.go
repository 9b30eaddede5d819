package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// suiteRun runs a test binary to the end of every test, past those that hang or
// bring the process down.
type suiteRun struct {
	binary, dir string
	perTest     time.Duration // what one test may take
	output      strings.Builder
}

// suiteResult is how a test or a subtest ended: PASS, SKIP, FAIL, or in words.
type suiteResult struct {
	outcome string
	took    time.Duration // of a test that ended by itself
	lines   []string
}

// text is the end of what the test printed: of a goroutine dump the beginning
// says more, so that of a long text both ends are kept.
func (r *suiteResult) text() string {
	const ends = 40
	lines := r.lines
	if len(lines) > 2*ends {
		lines = slices.Concat(lines[:ends], []string{fmt.Sprintf("… %d lines …", len(lines)-2*ends)}, lines[len(lines)-ends:])
	}
	return strings.Join(lines, "\n")
}

// all runs the named tests, starting the binary anew after each that did not
// come back, without it.
func (r *suiteRun) all(ctx context.Context, names []string) (map[string]*suiteResult, error) {
	results := map[string]*suiteResult{}
	pending := slices.Clone(names)
	for len(pending) > 0 {
		p := suiteParser{results: results}
		err := r.once(ctx, pending, &p)
		left := slices.DeleteFunc(slices.Clone(pending), func(name string) bool { return results[name] != nil && results[name].outcome != "" })
		if len(left) == 0 && (err == nil || failures(results)) {
			return results, nil
		}
		if ctx.Err() != nil {
			return results, fmt.Errorf("running the suite: %w, with %d tests to go", ctx.Err(), len(left))
		}
		if p.current == "" || len(left) == 0 {
			return results, fmt.Errorf("running the suite: %v, and no test of %d did it:\n%s", err, len(pending), strings.Join(p.outside, "\n"))
		}
		// A panic in a subtest is told as its failure first, so that the test may have ended.
		stuck := results[p.current]
		stuck.outcome = fmt.Sprint(err)
		stuck.lines = append(stuck.lines, p.outside...)
		pending = slices.DeleteFunc(left, func(name string) bool { return name == p.current })
	}
	return results, nil
}

// failures reports whether a test failed, which makes the binary's status 1.
func failures(results map[string]*suiteResult) bool {
	for _, r := range results {
		if r.outcome == "FAIL" {
			return true
		}
	}
	return false
}

var errHang = errors.New("hung")

// once runs the binary until it ends or one test takes too long, which is then
// asked for its goroutines and killed.
func (r *suiteRun) once(ctx context.Context, names []string, p *suiteParser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.binary, "-test.v=test2json", "-test.timeout=0", "-test.run=^("+strings.Join(names, "|")+")$")
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GOTRACEBACK=all")
	pr, pw := io.Pipe()
	cmd.Stdout, cmd.Stderr = pw, pw
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		pw.Close()
		ended <- err
	}()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewReader(pr); ; {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()

	hung := false
	limit := time.NewTimer(r.perTest)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				err := <-ended
				if hung {
					return errHang
				}
				return err
			}
			r.output.WriteString(strings.ReplaceAll(line, "\x16", "") + "\n")
			if p.line(line) && !hung {
				limit.Reset(r.perTest)
			}
		case <-limit.C:
			if hung {
				cancel() // it does not even answer the signal
				continue
			}
			hung = true
			if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
				cancel()
			}
			limit.Reset(10 * time.Second)
		}
	}
}

// suiteParser reads what a test binary prints with -test.v=test2json.
type suiteParser struct {
	results map[string]*suiteResult
	current string   // the top-level test that runs
	speaker string   // the test or subtest whose lines these are
	outside []string // what was printed since the last line that named a test
}

var suiteLine = regexp.MustCompile(`^ *(=== (?:RUN|NAME|CONT|PAUSE)|--- (?:PASS|FAIL|SKIP):) +([^ ]*)(?: \(([0-9.]+s)\))?`)

// line takes in a line and reports whether a top-level test begins with it.
func (p *suiteParser) line(text string) bool {
	// The marker stands before what the testing package itself prints, in the
	// middle of a line if the test left one unfinished.
	if i := strings.LastIndexByte(text, '\x16'); i >= 0 {
		p.said(text[:i])
		text = text[i+1:]
	} else {
		p.said(text)
		return false
	}
	m := suiteLine.FindStringSubmatch(text)
	if m == nil {
		p.said(text)
		return false
	}
	what, name := m[1], m[2]
	p.speaker, p.outside = name, nil
	if name == "" {
		return false
	}
	if p.results[name] == nil {
		p.results[name] = &suiteResult{}
	}
	if outcome, ok := strings.CutPrefix(what, "--- "); ok {
		p.results[name].outcome = strings.TrimSuffix(outcome, ":")
		p.results[name].took, _ = time.ParseDuration(m[3])
		return false
	}
	if what != "=== RUN" || strings.Contains(name, "/") {
		return false
	}
	p.current = name
	return true
}

func (p *suiteParser) said(text string) {
	if text == "" {
		return
	}
	if r := p.results[p.speaker]; r != nil {
		r.lines = append(r.lines, text)
	}
	p.outside = append(p.outside, text)
}

func TestGoSuiteParser(t *testing.T) {
	p := suiteParser{results: map[string]*suiteResult{}}
	began := 0
	for _, line := range []string{
		"\x16=== RUN   TestA", "\x16=== RUN   TestA/h1", "    a_test.go:1: one", "left open\x16--- FAIL: TestA/h1 (0.00s)",
		"\x16=== NAME  TestA", "    a_test.go:2: two", "\x16--- FAIL: TestA (1.50s)", "\x16=== NAME  ",
		"\x16=== RUN   TestB", "\x16--- SKIP: TestB (0.00s)", "\x16=== RUN   TestC", "panic: stuck",
	} {
		if p.line(line) {
			began++
		}
	}
	for name, want := range map[string]suiteResult{
		"TestA":    {"FAIL", 1500 * time.Millisecond, []string{"    a_test.go:2: two"}},
		"TestA/h1": {"FAIL", 0, []string{"    a_test.go:1: one", "left open"}},
		"TestB":    {"SKIP", 0, nil},
		"TestC":    {"", 0, []string{"panic: stuck"}},
	} {
		if got := p.results[name]; got == nil || got.outcome != want.outcome || got.took != want.took || !slices.Equal(got.lines, want.lines) {
			t.Errorf("%s ended as %v, want %v", name, got, want)
		}
	}
	if began != 3 || p.current != "TestC" || len(p.results) != 4 {
		t.Errorf("%d top-level tests began, the last %q, %d in all; want 3, TestC, 4", began, p.current, len(p.results))
	}
}
