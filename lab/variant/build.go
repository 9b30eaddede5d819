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

	// Settings are the build's own: flags of go build, and NAME=value. The go command is
	// asked with the latter; both are up to the caller's go build.
	Settings []string

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
		module, err := a.findModule(ctx, v)
		if err != nil {
			return err
		}
		// What a go.mod requires is the least version, and another module may want more.
		a.edits = append(a.edits, "-replace="+module+"="+module+"@"+v.Version)
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
	workspace, sums, err := a.workspace(ctx, filepath.Dir(original))
	if err != nil {
		return err
	}
	if err := a.writeSums(append(sums, strings.TrimSuffix(original, "mod")+"sum")); err != nil {
		return err
	}
	if _, err := a.goCommand(ctx, slices.Concat([]string{"mod", "edit"}, workspace, a.edits, []string{name})...); err != nil {
		return err
	}
	a.build.Flags = append(a.build.Flags, "-modfile="+name, "-mod=mod")
	a.build.Env = append(a.build.Env, "GOWORK=off") // a workspace takes no -modfile
	return nil
}

// writeSums writes the go.sum of the build from those that there are, and that of serve,
// whose requirements need not be looked up then.
func (a *applier) writeSums(files []string) error {
	if a.ServeModule != "" {
		files = append(files, filepath.Join(a.ServeModule, "go.sum"))
	}
	var sums []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		sums = append(sums, content...)
	}
	_, err := a.write("go.sum", sums)
	return err
}

// listed is what go list prints of a module: tabs between what [applier.workspace] reads.
const listed = "{{.Main}}\t{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{with .Replace}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}"

// workspace returns the edits that give the module in a folder what it has in its
// workspace: versions, replacements and the modules beside it. It also returns the files
// of their checksums. Outside of a workspace there is neither.
func (a *applier) workspace(ctx context.Context, dir string) (edits, sums []string, err error) {
	out, err := a.goCommand(ctx, "env", "GOWORK")
	file := strings.TrimSpace(string(out))
	if err != nil || file == "" || file == "off" {
		return nil, nil, err
	}
	if out, err = a.goCommand(ctx, "list", "-m", "-mod=readonly", "-f", listed, "all"); err != nil {
		return nil, nil, err
	}
	sums = append(sums, file+".sum")
	for line := range strings.Lines(string(out)) {
		m := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		main, module, version, at := m[0] == "true", m[1], m[2], m[3]
		switch {
		case !main:
			edits = append(edits, "-require="+module+"@"+version)
		case at != dir:
			edits = append(edits, "-replace="+module+"="+at)
			sums = append(sums, filepath.Join(at, "go.sum"))
		}
		if len(m) < 7 {
			continue // it is not replaced
		}
		by := m[6] // a folder
		if m[5] != "" {
			by = m[4] + "@" + m[5]
		}
		edits = append(edits, "-replace="+module+"="+by)
	}
	return edits, sums, nil
}

// majorSuffix is the end of a module's path that names its major version.
var majorSuffix = regexp.MustCompile(`[/.]v[0-9]+$`)

// findModule finds what the program requires by its path or by its last element. Of
// several, the one of the version's major version is meant, or what the program requires
// itself.
func (a *applier) findModule(ctx context.Context, v Variant) (string, error) {
	out, err := a.goCommand(ctx, "list", "-m", "-mod=readonly", "-f", "{{if not .Main}}{{.Path}} {{.Indirect}}{{end}}", "all")
	if err != nil {
		return "", err
	}
	var found, ofMajor, direct []string
	for line := range strings.Lines(string(out)) {
		module, indirect, _ := strings.Cut(strings.TrimSpace(line), " ")
		if module == v.Module {
			return module, nil
		}
		if path.Base(majorSuffix.ReplaceAllString(module, "")) != v.Module {
			continue
		}
		found = append(found, module)
		if hasMajor(module, v.Version) {
			ofMajor = append(ofMajor, module)
		}
		if indirect == "false" {
			direct = append(direct, module)
		}
	}
	for _, choice := range [][]string{found, ofMajor, direct} {
		if len(choice) == 1 {
			return choice[0], nil
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("the program requires no module %q: `go list -m all` lists them", v.Module)
	}
	return "", fmt.Errorf("%q may be %s: write the whole path", v.Module, strings.Join(found, " or "))
}

// hasMajor reports whether a module's path is one for a version's major version.
func hasMajor(module, version string) bool {
	major, _, _ := strings.Cut(version, ".")
	suffix := strings.TrimLeft(majorSuffix.FindString(module), "/.")
	return suffix == major || suffix == "" && (major == "v0" || major == "v1")
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
	env := slices.DeleteFunc(slices.Clone(a.Settings), func(s string) bool { return s == "" || strings.HasPrefix(s, "-") })
	return goCommand(ctx, a.Dir, append(env, a.build.Env...), args...)
}

// goCommand runs the go command in a folder, with NAME=value added to the environment.
func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
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
