package variant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Options say what is built and where files may be put.
type Options struct {
	Dir  string // of the program's package main
	Work string // an existing folder for files of the build; needed until it has ended

	// Profile is the CPU profile for PGO. Left out, the build is the one that takes
	// the profile: see [ProfileVariable].
	Profile string
	// ServeModule is the folder of the module github.com/tarehq/tare/serve; for Serve.
	ServeModule string
}

// Build is what the go command needs for a build.
type Build struct {
	Flags []string // of go build
	Env   []string // NAME=value
}

// Apply returns how to build the program in Options.Dir with the variants. It writes
// to Options.Work alone. Errors of the go command hold what it printed.
func Apply(ctx context.Context, variants []Variant, o Options) (Build, error) {
	a := applier{Options: o, overlay: map[string]string{}}
	for _, v := range sorted(variants) {
		if err := a.add(ctx, v); err != nil {
			return Build{}, fmt.Errorf("building with %s: %w", v, err)
		}
	}
	return a.finish(ctx)
}

// applier gathers what the variants of one build ask for.
type applier struct {
	Options
	build   Build
	edits   []string          // flags of go mod edit
	overlay map[string]string // file → the one read in its place
}

func (a *applier) add(ctx context.Context, v Variant) error {
	switch v.Kind {
	case Toolchain:
		a.build.Env = append(a.build.Env, "GOTOOLCHAIN="+v.Version)
		return nil
	case Requirement:
		module, err := a.findModule(ctx, v.Module)
		if err != nil {
			return err
		}
		a.edits = append(a.edits, "-require="+module+"@"+v.Version)
		return nil
	case PGO:
		return a.addProfile()
	case Serve:
		return a.addServe(ctx)
	}
	return fmt.Errorf("%q is not a kind of variant", v.Kind)
}

// finish writes the go.mod and the overlay that were asked for.
func (a *applier) finish(ctx context.Context) (Build, error) {
	if len(a.edits) > 0 {
		if err := a.writeModule(ctx); err != nil {
			return Build{}, fmt.Errorf("writing the build's go.mod: %w", err)
		}
	}
	if len(a.overlay) == 0 {
		return a.build, nil
	}
	content, err := json.Marshal(struct{ Replace map[string]string }{a.overlay})
	if err != nil {
		return Build{}, err
	}
	name, err := a.write("overlay.json", content)
	if err != nil {
		return Build{}, err
	}
	a.build.Flags = append(a.build.Flags, "-overlay="+name)
	return a.build, nil
}

// writeModule copies the program's go.mod and go.sum, edited, for -modfile. The go
// command adds what it finds missing to the copy.
func (a *applier) writeModule(ctx context.Context) error {
	out, err := a.goCommand(ctx, "env", "GOMOD")
	if err != nil {
		return err
	}
	original := strings.TrimSpace(string(out))
	if original == "" || original == os.DevNull {
		return fmt.Errorf("%s is not in a module: a program without go.mod has no requirements", a.Dir)
	}
	mod, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	name, err := a.write("go.mod", mod)
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(strings.TrimSuffix(original, "mod") + "sum")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := a.write("go.sum", sum); err != nil {
		return err
	}
	if _, err := a.goCommand(ctx, append(append([]string{"mod", "edit"}, a.edits...), name)...); err != nil {
		return err
	}
	a.build.Flags = append(a.build.Flags, "-modfile="+name, "-mod=mod")
	a.build.Env = append(a.build.Env, "GOWORK=off") // a workspace takes no -modfile
	return nil
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// findModule finds what the program requires by its path or by its last element.
func (a *applier) findModule(ctx context.Context, name string) (string, error) {
	out, err := a.goCommand(ctx, "list", "-m", "-mod=readonly", "-f", "{{if not .Main}}{{.Path}}{{end}}", "all")
	if err != nil {
		return "", err
	}
	var found []string
	for _, module := range strings.Fields(string(out)) {
		if module == name {
			return module, nil
		}
		last := path.Base(module)
		if majorVersion.MatchString(last) {
			last = path.Base(path.Dir(module))
		}
		if last == name {
			found = append(found, module)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("the program requires no module %q: `go list -m all` lists them", name)
	}
	return "", fmt.Errorf("%q may be %s: write the whole path", name, strings.Join(found, " or "))
}

// write puts a file into the working folder and returns its whole path.
func (a *applier) write(name string, content []byte) (string, error) {
	at, err := filepath.Abs(filepath.Join(a.Work, name))
	if err != nil {
		return "", err
	}
	return at, os.WriteFile(at, content, 0o644)
}

// goCommand runs the go command in the program's folder, by the toolchain that the
// build uses.
func (a *applier) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = a.Dir, append(os.Environ(), a.build.Env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", args[0], cmp.Or(ctx.Err(), err), strings.TrimSpace(said.String()))
	}
	return out, nil
}

// addSource adds a file to the package main, for this build alone.
func (a *applier) addSource(name, source string) error {
	dir, err := filepath.Abs(a.Dir)
	if err != nil {
		return err
	}
	at, err := a.write(name, []byte(source))
	if err != nil {
		return err
	}
	a.overlay[filepath.Join(dir, name)] = at
	return nil
}

// sorted puts toolchains first: what is asked of the go command depends on them.
func sorted(variants []Variant) []Variant {
	order := []Kind{Toolchain, Requirement, Serve, PGO}
	return slices.SortedStableFunc(slices.Values(variants), func(a, b Variant) int {
		return cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind))
	})
}
