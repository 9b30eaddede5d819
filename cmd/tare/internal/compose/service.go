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
	"github.com/tarehq/tare/internal/secret"
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

	base     string   // what Name begins with, if tare starts the service
	settings []string // Env as it was typed
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

// beforeHost is what stands before the host of a URL.
var beforeHost = regexp.MustCompile(`^https?://(?:[^/]*@)?`)

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// ParseService reads what stands on the command line for one service: a URL, the folder of
// a Go program with an optional @REF, or a command; the last two with NAME=value before
// and arguments after, quoted as for a shell.
func ParseService(text string) (Service, error) {
	a := Service{Text: text}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		a.URL = strings.TrimSuffix(text, "/")
		a.Name = CleanName(secret.Mask(beforeHost.ReplaceAllString(a.URL, "")))
		return a, nil
	}
	words, err := splitWords(text)
	if err != nil {
		return a, fmt.Errorf("reading %q: %w", text, err)
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
	case ref != "" && !isFile(program) && (looksLikePath(path) || isPackage(path)):
		a.Pkg, a.Ref, a.Args = path, ref, rest
	default:
		if a.Command, err = findProgram(program); err != nil {
			return a, err
		}
		a.Command = append(a.Command, rest...)
	}
	a.base, a.settings = nameOf(strings.TrimSuffix(program, "@"+a.Ref), a.Ref), a.Env
	a.Env = expandBraces(a.Env)
	a.Name = a.nameWithout(nil)
	return a, nil
}

// splitWords reads words as a shell does. What is there under the whole name is one word,
// whatever characters are in it.
func splitWords(text string) ([]string, error) {
	if _, err := os.Stat(text); err == nil {
		return []string{text}, nil
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
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w (for a shell command write sh -c '…')", err)
	case unset != "":
		return nil, fmt.Errorf("$%s is not set here (for a variable that the service itself has write sh -c '…')", unset)
	}
	return words, nil
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

// isFile reports whether a path is that of a file, such as a program.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
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

// nameOf is what tables call a program: its last path element and its commit.
func nameOf(program, ref string) string {
	if abs, err := filepath.Abs(program); err == nil && looksLikePath(program) {
		program = abs
	}
	name := filepath.Base(program)
	if ref != "" {
		name += "@" + ref
	}
	return name
}

// nameWithout names a service by its program, those of its settings that are not shared, and the
// variants of its build.
func (a *Service) nameWithout(shared []string) string {
	name := a.base
	for _, setting := range a.settings {
		variable, value, _ := strings.Cut(setting, "=")
		switch {
		case slices.Contains(shared, setting):
		case secret.Is(variable):
			name += "+" + variable
		default:
			name += "+" + variable + "-" + secret.Mask(value)
		}
	}
	for _, word := range a.With {
		name += "+" + word
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

// NameApart names arms without the settings that all have. Those that share a name get the
// arguments that the first of that name does not have, and a number if they share one still.
func NameApart(arms []Service) {
	shared := slices.DeleteFunc(slices.Clone(arms[0].settings), func(setting string) bool {
		return slices.ContainsFunc(arms, func(a Service) bool { return !slices.Contains(a.settings, setting) })
	})
	for i := range arms {
		if arms[i].base != "" {
			arms[i].Name = arms[i].nameWithout(shared)
		}
	}
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
	taken := map[string]bool{}
	for i := range arms {
		name := arms[i].Name
		for n := 2; taken[arms[i].Name] || n > 2 && isNamed(arms[i+1:], arms[i].Name); n++ {
			arms[i].Name = name + "-" + strconv.Itoa(n)
		}
		taken[arms[i].Name] = true
	}
}

// isNamed reports whether one of the services has that name.
func isNamed(all []Service, name string) bool {
	return slices.ContainsFunc(all, func(a Service) bool { return a.Name == name })
}

// wordsBeside are those of a's program and arguments that b does not have, for people.
func (a *Service) wordsBeside(b *Service) (words []string) {
	own := slices.Concat(a.Command, a.Args)
	for i, word := range secret.MaskAll(own) {
		if !slices.Contains(b.Command, own[i]) && !slices.Contains(b.Args, own[i]) {
			words = append(words, word)
		}
	}
	return words
}

// Explain adds remedies to what goes wrong with services.
func Explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if hint := findRemedy(err); hint != "" {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: hint}
	}
	return err
}

// wrongAnswer is in what lab says of answers that are not as a workload asks.
var wrongAnswer = regexp.MustCompile(`answers with status|not as the workload asks|status \d+, want|body of .*, want`)

// findRemedy is what helps a service that fails so; "" where no service has to do with it.
func findRemedy(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(strings.ToLower(text), "address already in use"):
		return "something listens on that port already: is the service running? Stop it, or compare it by its URL"
	case strings.Contains(text, "under load: the arm ended"):
		return "it ended while it was loaded: start it by hand, load it with `tare load`, and see what it prints; -c and --rate ask for less"
	case strings.Contains(text, "ended: exit status 0"):
		return "tare compares services that stay in the foreground and answer HTTP, as nginx -g 'daemon off;' does; one that went to the background may still run, and hold its port"
	case !errors.Is(err, lab.ErrArm):
		return ""
	case strings.Contains(text, `: running "`):
		return "run that command by hand: --before and --after are for a shell, in the folder of --workdir and with the settings of --env-file"
	case wrongAnswer.MatchString(text):
		return "--path says what to ask for, --ready PATH what to ask until the service is ready; --status CODE expects another status"
	case strings.Contains(text, "connection refused") && !strings.Contains(text, "it wrote:"):
		return "nothing listens there: start that service, or check the port in its URL"
	}
	return "start the service by hand; --path, --ready and --port say what to ask, when it is ready and where it listens; --workdir and --env-file say where it runs and with which settings"
}
