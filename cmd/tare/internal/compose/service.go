// Package compose makes a study file of what a command line names: services, requests, and
// how the services start.
package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab"
	"mvdan.cc/sh/v3/shell"
)

// Service is one program under comparison, as the command line names it.
type Service struct {
	Name string // unique among those compared
	Text string // as it was typed

	URL     string   // of a service that runs already
	Pkg     string   // folder of a Go package main, to be built
	Ref     string   // the commit at which pkg is built; "" = as it lies there
	With    []string // variants of the build
	Command []string // a program, without args
	Args    []string
	Env     []string // NAME=value
}

// ServiceFlags say how a service is started. They hold for all that tare starts.
type ServiceFlags struct {
	Port    int    `help:"Port to measure, if a service opens several." placeholder:"N"`
	Ready   string `help:"Path that has a status below 400 once a service is ready (default: the first --path)." placeholder:"PATH"`
	Before  string `help:"Shell command to run before each start, such as a migration." placeholder:"COMMAND"`
	After   string `help:"Shell command to run after each stop." placeholder:"COMMAND"`
	Workdir string `default:"." help:"Working directory of the services; {dir} in an argument is a new, empty folder at each start."`
	EnvFile string `help:"File with NAME=value lines for the environment." placeholder:"FILE"`
}

// startVariables are set at each start. In a service's text they stand for what they are then.
var startVariables = map[string]string{"PORT": "${TARE_PORT}", "HOST": "${TARE_HOST}",
	"TARE_ADDR": "${TARE_ADDR}", "TARE_HOST": "${TARE_HOST}", "TARE_PORT": "${TARE_PORT}", "TARE_DIR": "${TARE_DIR}"}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// ParseService reads what stands on the command line for one service: a URL, the folder of
// a Go program with an optional @REF, or a command; the last two with NAME=value before
// and arguments after, quoted as for a shell.
func ParseService(text string) (Service, error) {
	a := Service{Text: text}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		a.URL = strings.TrimSuffix(text, "/")
		a.Name = CleanName(strings.NewReplacer("http://", "", "https://", "").Replace(a.URL))
		return a, nil
	}
	var unset string
	words, err := shell.Fields(text, func(name string) string {
		if own, ok := startVariables[name]; ok {
			return own
		}
		value, ok := os.LookupEnv(name)
		if !ok && (strings.Contains(text, "$"+name) || strings.Contains(text, "${"+name+"}")) {
			unset = name
		}
		return value
	})
	if err != nil {
		return a, fmt.Errorf("reading %q: %w (for a shell command write sh -c '…')", text, err)
	}
	if unset != "" {
		return a, fmt.Errorf("reading %q: $%s is not set here (for a variable that the service itself has write sh -c '…')", text, unset)
	}
	for len(words) > 0 && assignment.MatchString(words[0]) {
		a.Env, words = append(a.Env, words[0]), words[1:]
	}
	if len(words) == 0 {
		return a, fmt.Errorf("%q names no program", text)
	}
	program, rest := words[0], expandBraces(words[1:])
	switch path, ref, _ := strings.Cut(program, "@"); {
	case isPackage(program):
		a.Pkg, a.Args = program, rest
	case ref != "" && looksLikePath(path):
		a.Pkg, a.Ref, a.Args = path, ref, rest
	default:
		if a.Command, err = findProgram(program); err != nil {
			return a, err
		}
		a.Command = append(a.Command, rest...)
	}
	a.Name = nameOf(strings.TrimSuffix(program, "@"+a.Ref), a.Ref, a.Env)
	a.Env = expandBraces(a.Env)
	return a, nil
}

// address is one as other tools take it: a host, or none, and a port with what follows.
var address = regexp.MustCompile(`^([A-Za-z0-9.-]*)(:[0-9]+(?:/.*)?)$`)

// findProgram checks that a command can be started.
func findProgram(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder without Go files: name the folder of a package main, or a program", name)
	}
	if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
		if m := address.FindStringSubmatch(name); m != nil {
			return nil, fmt.Errorf("%q is no program: a service that runs already is written http://%s%s", name, cmp.Or(m[1], "localhost"), m[2])
		}
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

// expandBraces writes {addr} and its like as study files have them. Without any it is nil.
func expandBraces(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = braces.Replace(arg)
	}
	return all
}

var braces = strings.NewReplacer("{addr}", "${TARE_ADDR}", "{host}", "${TARE_HOST}", "{port}", "${TARE_PORT}", "{dir}", "${TARE_DIR}")

var unnamed = regexp.MustCompile(`[^A-Za-z0-9._+@-]+`)

// nameOf is what tables call a program: its last path element, its commit and its settings.
func nameOf(program, ref string, env []string) string {
	if abs, err := filepath.Abs(program); err == nil && looksLikePath(program) {
		program = abs
	}
	name := filepath.Base(program)
	if ref != "" {
		name += "@" + ref
	}
	for _, setting := range env {
		name += "+" + strings.Replace(setting, "=", "-", 1)
	}
	return CleanName(name)
}

// CleanName makes a name that study files allow: at most 63 of their characters.
func CleanName(name string) string {
	name = strings.Trim(unnamed.ReplaceAllString(name, "-"), "-._+@")
	if name == "" {
		name = "arm"
	}
	return name[:min(len(name), 60)]
}

// NameApart names arms that share a name by the arguments that the first of that name does
// not have, and numbers those that share one still.
func NameApart(arms []Service) {
	first := map[string]*Service{}
	for i := range arms {
		a := &arms[i]
		one, shared := first[a.Name]
		if !shared {
			first[a.Name] = a
		} else if more := a.wordsBeside(one); len(more) > 0 {
			a.Name = CleanName(a.Name + "+" + strings.Join(more, "-"))
		}
	}
	seen := map[string]int{}
	for i := range arms {
		name := arms[i].Name
		seen[name]++
		if n := seen[name]; n > 1 {
			arms[i].Name = name + "-" + strconv.Itoa(n)
			seen[arms[i].Name]++
		}
	}
}

// wordsBeside are those of a's program and arguments that b does not have.
func (a *Service) wordsBeside(b *Service) []string {
	known := slices.Concat(b.Command, b.Args)
	return slices.DeleteFunc(slices.Concat(a.Command, a.Args), func(word string) bool { return slices.Contains(known, word) })
}

// Explain adds remedies to what goes wrong with services.
func Explain(err error) error {
	hint := ""
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case strings.Contains(strings.ToLower(err.Error()), "address already in use"):
		hint = "something listens on that port already: is the service running? Stop it, or compare it by its URL"
	case strings.Contains(err.Error(), "ended: exit status 0"):
		hint = "the service ended by itself or went to the background: start it in the foreground, as in nginx -g 'daemon off;'"
	case errors.Is(err, lab.ErrArm):
		hint = "start the service by hand; --path, --ready and --port say what to ask, when it is ready and where it listens; --workdir and --env-file say where it runs and with which settings"
	default:
		return err
	}
	return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: hint}
}
