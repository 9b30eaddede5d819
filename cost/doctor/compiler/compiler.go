// Package compiler asks the Go compiler what it decided about a program's
// source: which values go to the heap, and which deferred calls do.
//
// The compiler's word says where memory may be allocated, never how much: it is
// worth reading only where a profile has bytes on the same line.
package compiler

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Kind is what was decided.
type Kind string

// Kinds of decisions.
const (
	Escape Kind = "escape" // a value lives on the heap
	Defer  Kind = "defer"  // a deferred call is kept on the heap: it stands in a loop
)

// Decision is one line of the compiler's diagnostics.
type Decision struct {
	Kind Kind
	File string // absolute
	Line int
	Text string // "moved to heap: cfg", "&Config{…} escapes to heap"
}

// Ask builds the packages below dir for their diagnostics and returns the
// decisions. Nothing is left behind but the go command's cache, which also makes
// asking again cheap.
func Ask(ctx context.Context, dir string) ([]Decision, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", os.DevNull, "-gcflags=-m -d=defer=1", "./...")
	cmd.Dir = abs
	var out bytes.Buffer
	cmd.Stderr = &out
	err = cmd.Run()
	decisions := read(abs, out.Bytes())
	if err != nil && len(decisions) == 0 {
		return nil, fmt.Errorf("building %s: %w: %s", dir, err, complaint(out.Bytes()))
	}
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return decisions, nil
}

// complaint is what the go command said that is no diagnostic, shortened.
func complaint(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line[:min(len(line), 200)]
		}
	}
	return "it did not say why"
}

// read picks the decisions out of lines "file:line:col: text". Others, on what is
// inlined or stays on the stack, are most of them.
func read(dir string, out []byte) []Decision {
	var all []Decision
	seen := map[Decision]bool{} // generic functions are compiled, and told of, more than once
	in := bufio.NewScanner(bytes.NewReader(out))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		d, ok := decision(dir, in.Text())
		if ok && !seen[d] {
			seen[d] = true
			all = append(all, d)
		}
	}
	return all
}

func decision(dir, line string) (Decision, bool) {
	place, text, ok := strings.Cut(line, ": ")
	if !ok {
		return Decision{}, false
	}
	kind := Escape
	switch {
	case strings.HasPrefix(text, "heap-allocated defer"):
		kind = Defer
	case strings.HasPrefix(text, "moved to heap: "), strings.HasSuffix(text, " escapes to heap"):
	default:
		return Decision{}, false
	}
	file, number, _ := strings.Cut(place, ".go:")
	number, _, _ = strings.Cut(number, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return Decision{}, false
	}
	file += ".go"
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return Decision{Kind: kind, File: file, Line: n, Text: text}, true
}
