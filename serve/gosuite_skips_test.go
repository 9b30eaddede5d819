package serve_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// suiteKinds are the reasons for which a test may be skipped.
var suiteKinds = []string{
	"white-box",  // reaches into net/http's unexported server: what does not compile is cut out
	"client",     // says nothing about a server
	"mode",       // a mode that Go does not run it in and that it was not written for
	"difference", // deliberate: the reason names the rule; http.Server does run it
	"kept",       // keeps a request after its handler has returned, which Reuse forbids
	"other",      // of the transport: what Options.Other or http.Client is for
	"self",       // skips itself, always or on some machines
}

// suiteSkip is a row of skips.txt.
type suiteSkip struct {
	place              string // file:line
	test, kind, reason string
}

// readSuiteSkips reads a file of lines "test kind reason"; # begins a comment.
func readSuiteSkips(path string) ([]suiteSkip, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the skipped tests: %w", err)
	}
	return parseSuiteSkips(path, string(text))
}

func parseSuiteSkips(path, text string) ([]suiteSkip, error) {
	var rows []suiteSkip
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s:%d: want test, kind and reason, got %q", path, i+1, line)
		}
		row := suiteSkip{place: fmt.Sprintf("%s:%d", path, i+1), test: fields[0], kind: fields[1], reason: strings.Join(fields[2:], " ")}
		if !slices.Contains(suiteKinds, row.kind) {
			return nil, fmt.Errorf("%s:%d: kind is %q, want one of %q", path, i+1, row.kind, suiteKinds)
		}
		if slices.ContainsFunc(rows, func(r suiteSkip) bool { return r.test == row.test }) {
			return nil, fmt.Errorf("%s:%d: a second row for %s", path, i+1, row.test)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func TestGoSuiteSkips(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"TestA client why not\n# note\n\nTestB/h2 mode because", ""},
		{"TestA client", `f:1: want test, kind and reason, got "TestA client"`},
		{"\nTestA flaky sometimes", `f:2: kind is "flaky", want one of ["white-box" "client" "mode" "difference" "kept" "other" "self"]`},
		{"TestA client a\nTestA mode b", "f:2: a second row for TestA"},
	} {
		rows, err := parseSuiteSkips("f", c.text)
		if got := errorText(err); got != c.want {
			t.Errorf("reading %q: error %q, want %q", c.text, got, c.want)
		}
		if err == nil && (len(rows) != 2 || rows[1] != suiteSkip{"f:4", "TestB/h2", "mode", "because"}) {
			t.Errorf("reading %q: got %v", c.text, rows)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
