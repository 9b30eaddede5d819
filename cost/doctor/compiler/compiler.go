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
	"iter"
	"os"
	"os/exec"
	"path"
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
	below := modules(ctx, abs)
	args := []string{"build", "-o", os.DevNull, "-gcflags=-m -d=defer=1"}
	cmd := exec.CommandContext(ctx, "go", append(args, below...)...)
	cmd.Dir = abs
	var out bytes.Buffer
	cmd.Stderr = &out
	err = cmd.Run()
	decisions := source{abs, packages(ctx, abs, below)}.read(out.Bytes())
	if err != nil && len(decisions) == 0 {
		return nil, fmt.Errorf("building %s: %w: %s", dir, err, complaint(out.Bytes()))
	}
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return decisions, nil
}

// modules returns patterns of all packages below dir: of each module of a workspace that
// lies there, since the workspace's own folder is mostly no module.
func modules(ctx context.Context, dir string) []string {
	var patterns []string
	for line := range list(ctx, dir, "-m", "-f", "{{.Dir}}") {
		module, err := filepath.Rel(dir, line)
		if err == nil && filepath.IsLocal(module) {
			patterns = append(patterns, "./"+path.Join(filepath.ToSlash(module), "..."))
		}
	}
	if len(patterns) == 0 {
		return []string{"./..."}
	}
	return patterns
}

// packages returns the folders of the packages that fit patterns, by their import paths.
func packages(ctx context.Context, dir string, patterns []string) map[string]string {
	folders := map[string]string{}
	for line := range list(ctx, dir, append([]string{"-e", "-f", "{{.ImportPath}} {{.Dir}}"}, patterns...)...) {
		name, folder, _ := strings.Cut(line, " ")
		folders[name] = folder
	}
	return folders
}

// list yields what go list prints; what is wrong is said when it is built.
func list(ctx context.Context, dir string, args ...string) iter.Seq[string] {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	out, _ := cmd.Output()
	return strings.SplitSeq(strings.TrimSpace(string(out)), "\n")
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

// source is what was built: below a folder, packages that have folders.
type source struct {
	dir      string
	packages map[string]string // by import path
}

// read picks the decisions out of lines "file:line:col: text", which follow "# package".
// Others, on what is inlined or stays on the stack, are most of them.
func (s source) read(out []byte) []Decision {
	var all []Decision
	seen := map[Decision]bool{} // generic functions are compiled, and told of, more than once
	in := bufio.NewScanner(bytes.NewReader(out))
	in.Buffer(nil, 1<<20)
	pkg := ""
	for in.Scan() {
		if name, ok := strings.CutPrefix(in.Text(), "# "); ok {
			pkg = name
			continue
		}
		d, ok := s.decision(pkg, in.Text())
		if ok && !seen[d] {
			seen[d] = true
			all = append(all, d)
		}
	}
	return all
}

func (s source) decision(pkg, line string) (Decision, bool) {
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
	return Decision{Kind: kind, File: s.file(pkg, file+".go"), Line: n, Text: text}, true
}

// file returns where a file lies that was told of in building a package. One of the
// package's own may be told by its path from another folder: that in which it was built
// when the go command put what was said into its cache.
func (s source) file(pkg, name string) string {
	folder, told := s.packages[pkg], filepath.Join("/", filepath.Dir(name))
	switch {
	case filepath.IsAbs(name):
		return name
	case folder != "" && (told == "/" || strings.HasSuffix(folder, told)):
		return filepath.Join(folder, filepath.Base(name))
	}
	return filepath.Join(s.dir, name)
}
