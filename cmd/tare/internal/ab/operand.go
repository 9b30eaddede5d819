package ab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/shell"
)

// service is one program under comparison, as the command line names it.
type service struct {
	name string // unique among those compared
	text string // as it was typed

	url     string   // of a service that runs already
	pkg     string   // folder of a Go package main, to be built
	ref     string   // the commit at which pkg is built; "" = as it lies there
	with    []string // variants of the build
	command []string // a program, without args
	args    []string
	env     []string // NAME=value
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// parseArm reads what stands on the command line for one service: a URL, the folder of
// a Go program with an optional @REF, or a command; the last two with NAME=value before
// and arguments after, quoted as for a shell.
func parseArm(text string) (service, error) {
	a := service{text: text}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		a.url = strings.TrimSuffix(text, "/")
		a.name = strings.NewReplacer("http://", "", "https://", "", ":", "-", "/", "-").Replace(a.url)
		return a, nil
	}
	words, err := shell.Fields(text, os.Getenv)
	if err != nil {
		return a, fmt.Errorf("reading %q: %w", text, err)
	}
	for len(words) > 0 && assignment.MatchString(words[0]) {
		a.env, words = append(a.env, words[0]), words[1:]
	}
	if len(words) == 0 {
		return a, fmt.Errorf("%q names no program", text)
	}
	program, rest := words[0], expandBraces(words[1:])
	switch path, ref, _ := strings.Cut(program, "@"); {
	case isPackage(program):
		a.pkg, a.args = program, rest
	case ref != "" && looksLikePath(path):
		a.pkg, a.ref, a.args = path, ref, rest
	default:
		if a.command, err = findProgram(program); err != nil {
			return a, err
		}
		a.command = append(a.command, rest...)
	}
	a.name = nameOf(program, a.env)
	return a, nil
}

// findProgram checks that a command can be started.
func findProgram(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder without Go files: name the folder of a package main, or a program", name)
	}
	if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, fmt.Errorf("%q is neither a program nor the folder of a Go package: %w", name, errors.Unwrap(err))
	}
	return []string{name}, nil
}

// isPackage reports whether a path is a folder with Go files.
func isPackage(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	files, err := filepath.Glob(filepath.Join(path, "*.go"))
	return err == nil && len(files) > 0
}

// looksLikePath tells a folder from the name of a program: ./x, ../x, . and /x.
func looksLikePath(path string) bool {
	return path == "." || path == ".." || strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../") || filepath.IsAbs(path)
}

// expandBraces writes {addr} and its like as study files have them.
func expandBraces(args []string) []string {
	r := strings.NewReplacer("{addr}", "${TARE_ADDR}", "{host}", "${TARE_HOST}", "{port}", "${TARE_PORT}", "{dir}", "${TARE_DIR}")
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = r.Replace(arg)
	}
	return all
}

var unnamed = regexp.MustCompile(`[^A-Za-z0-9._+@-]+`)

// nameOf is what tables call a program: its last path element, and its settings.
func nameOf(program string, env []string) string {
	if abs, err := filepath.Abs(program); err == nil && looksLikePath(program) {
		program = abs
	}
	name := filepath.Base(program)
	for _, setting := range env {
		name += "+" + strings.Replace(setting, "=", "-", 1)
	}
	return cleanName(name)
}

// cleanName makes a name that study files allow: at most 63 of their characters.
func cleanName(name string) string {
	name = strings.Trim(unnamed.ReplaceAllString(name, "-"), "-._+@")
	if name == "" {
		name = "arm"
	}
	return name[:min(len(name), 60)]
}

// nameApart gives arms that share a name numbers.
func nameApart(arms []service) {
	seen := map[string]int{}
	for i := range arms {
		name := arms[i].name
		seen[name]++
		if n := seen[name]; n > 1 {
			arms[i].name = name + "-" + strconv.Itoa(n)
			seen[arms[i].name]++
		}
	}
}
