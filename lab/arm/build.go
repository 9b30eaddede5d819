package arm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/lab/study"
)

// Builder turns declared arms into programs. It builds each Go package, and
// identifies each command, once, and is safe for concurrent use.
type Builder struct {
	// ModuleDir is the root of tare's own module, or a directory in it, from
	// which ./arms/… and rivals are built. "" means the working directory.
	ModuleDir string
	// FetchSource returns the root of tare's own module where ModuleDir is "" and the
	// working directory is not in that module. nil makes that an error.
	FetchSource func(ctx context.Context) (string, error)
	// Cache is where executables are kept from run to run. "" means tare's
	// directory in the user's cache directory.
	Cache string

	// TakeProfile runs a program that was built to be profiled, under the load that Load tells
	// apart from others, and has it write its CPU profile (see variant.ProfileVariable) to a path.
	// It is for arms with the variant pgo, which cannot be built while it is nil.
	TakeProfile func(ctx context.Context, p Program, path string) error
	Load        string

	mu    sync.Mutex
	built map[target]executable
}

// Build returns what the arm runs. Errors wrap ErrNotInstalled where a program
// is missing, ErrNoCache where an executable cannot be kept; those of the Go
// toolchain hold the first lines that it printed.
func (b *Builder) Build(ctx context.Context, a study.Arm) (*Program, error) {
	for _, need := range a.Needs {
		if err := checkNeed(ctx, need); err != nil {
			return nil, err
		}
	}
	p := &Program{Args: slices.Clone(a.Args), Env: slices.Clone(a.Env), Sink: a.Sink, Service: a.Service}
	if err := p.prepareService(); err != nil {
		return nil, err
	}
	switch {
	case a.URL != "":
		u, err := url.Parse(a.URL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%q is not an absolute URL", a.URL)
		}
		p.URL = strings.TrimSuffix(a.URL, "/")
		return p, nil
	case len(a.Command) > 0:
		return p, b.command(p, a.Command)
	}
	t, err := b.target(ctx, a)
	if err != nil {
		return nil, err
	}
	t.how, t.ref, t.with = strings.Join(a.Build, "\n"), a.Ref, strings.Join(a.With, " ")
	return p, b.once(p, t, func() (executable, error) { return b.compileVariant(ctx, t, *p) })
}

// once describes a program, which is found unless it was before.
func (b *Builder) once(p *Program, t target, find func() (executable, error)) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.built[t]
	if !ok {
		if e, err = find(); err != nil {
			return err
		}
		if b.built == nil {
			b.built = map[target]executable{}
		}
		b.built[t] = e
	}
	e.describe(p)
	return nil
}

// command fills in a program that is already there. It runs where tare runs,
// so that its arguments may name files the way its user would.
func (b *Builder) command(p *Program, argv []string) error {
	path, err := lookUpProgram(argv[0])
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	if p.Dir == "" {
		if p.Dir, err = os.Getwd(); err != nil {
			return err
		}
	}
	if err := b.once(p, target{name: path}, func() (executable, error) { return inspect(path) }); err != nil {
		return err
	}
	p.Args = append(slices.Clone(argv[1:]), p.Args...)
	return nil
}

func lookUpProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%q: %w (nothing of that name in PATH)", name, ErrNotInstalled)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return path, nil
}

// needWithin bounds a command that an arm needs to succeed.
const needWithin = 10 * time.Second

// checkNeed finds a program that must be installed. Where arguments follow its name, it
// runs the program, which must succeed.
func checkNeed(ctx context.Context, need string) error {
	name, args, run := strings.Cut(need, " ")
	path, err := lookUpProgram(name)
	if err != nil || !run {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, needWithin)
	defer cancel()
	if out, err := exec.CommandContext(ctx, path, strings.Fields(args)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%q, which must succeed: %w: %s", need, err, firstLines(string(out), outputLines))
	}
	return nil
}

// target is something that the go command builds, or the path of a command alone.
type target struct {
	name    string // of the executable
	dir     string // where go build runs
	pkg     string // as go build takes it
	own     bool   // in tare's source, so that the user's settings do not apply
	require string // rivals only: "module version" to build with; "" = as pinned
	version string // of pkg's module, which is built by itself; "" = what dir has
	how     string // the arm's settings of the build, a line each
	ref     string // the commit at which dir is built; "" = as it is
	with    string // variants of the build, separated by spaces
	work    string // folder of the build's own files, another one each time
}

func (b *Builder) target(ctx context.Context, a study.Arm) (target, error) {
	if a.Rival != "" {
		return b.rival(ctx, a.Rival)
	}
	if strings.HasPrefix(a.Go, "./arms/") || a.Go == "./cmd/tare" || a.Go == "./serve/proxy/gateway" || a.Go == "./web/cmd/tare-web" || a.Go == "./kube/cmd/tare-kube" {
		// Elsewhere than in tare's own module, a folder of that name is the user's.
		if _, outside := b.findOwn(); outside == nil || !isDir(a.Go) {
			root, err := b.root(ctx)
			if err != nil {
				return target{}, err
			}
			if dir := filepath.Join(root, a.Go); isDir(dir) {
				// Built where it lies, it gets the versions of the module that it lies in.
				return target{name: filepath.Base(dir), dir: dir, pkg: ".", own: true}, nil
			}
		}
	}
	if isDir(a.Go) || a.Ref != "" {
		dir, err := filepath.Abs(a.Go)
		return target{name: filepath.Base(dir), dir: dir, pkg: "."}, err
	}
	if a.Go == "" || strings.HasPrefix(a.Go, ".") || filepath.IsAbs(a.Go) {
		return target{}, fmt.Errorf("package %q: %w", a.Go, ErrNoDirectory)
	}
	pkg, version, _ := strings.Cut(a.Go, "@")
	dir, err := os.Getwd()
	return target{name: commandName(pkg), dir: dir, pkg: pkg, version: version}, err
}

// commandName is what the go command calls the executable of a package.
func commandName(pkg string) string {
	name := path.Base(pkg)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(pkg))
	}
	return name
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// findOwn returns the root of tare's own module, if ModuleDir or the working directory is in it.
func (b *Builder) findOwn() (string, error) {
	return FindModule(cmp.Or(b.ModuleDir, "."))
}

// root returns the root of tare's own module, from wherever it is to be had.
func (b *Builder) root(ctx context.Context) (string, error) {
	root, err := b.findOwn()
	if err != nil && b.ModuleDir == "" && b.FetchSource != nil {
		return b.FetchSource(ctx)
	}
	return root, err
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
