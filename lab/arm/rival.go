package arm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// moduleDirective names, in a rival's main, the module that a version in
// "name@version" is of.
const moduleDirective = "//tare:module "

// rival resolves "name" or "name@version" to a package of arms/rivals.
func (b *Builder) rival(ctx context.Context, spec string) (target, error) {
	name, version, versioned := strings.Cut(spec, "@")
	root, err := b.root(ctx)
	if err != nil {
		return target{}, err
	}
	dir := filepath.Join(root, "arms", "rivals")
	if known := rivals(dir); !slices.Contains(known, name) {
		return target{}, fmt.Errorf("no rival is named %q: there are %s", name, strings.Join(known, ", "))
	}
	t := target{name: name, dir: dir, pkg: "./" + name, own: true}
	if !versioned {
		return t, nil
	}
	if ok, _ := regexp.MatchString(`^v[0-9][0-9A-Za-z.+-]*$`, version); !ok {
		return target{}, fmt.Errorf("rival %q: %q is not a version such as v1.2.3", name, version)
	}
	module, err := moduleOf(filepath.Join(dir, name, "main.go"))
	if err != nil {
		return target{}, err
	}
	t.require = module + " " + version
	return t, nil
}

// rivals are the directories that hold a main.go.
func rivals(dir string) []string {
	mains, err := filepath.Glob(filepath.Join(dir, "*", "main.go"))
	if err != nil {
		return nil
	}
	names := make([]string, len(mains))
	for i, m := range mains {
		names[i] = filepath.Base(filepath.Dir(m))
	}
	return names
}

func moduleOf(main string) (string, error) {
	src, err := os.ReadFile(main)
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(src) {
		if path, ok := strings.CutPrefix(string(line), moduleDirective); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", fmt.Errorf("%s: no line %q… says which module a version is of", main, moduleDirective)
}

// modFlags say which go.mod a target in tare's source is built with, whatever
// GOFLAGS says. A rival at a version is built from the same source under a
// go.mod of its own, outside the tree, that requires that version and nothing
// else; the go command adds to it what it finds missing.
func (b *Builder) modFlags(t target) ([]string, error) {
	if t.require == "" {
		return []string{"-mod=readonly"}, nil
	}
	pinned, err := os.ReadFile(filepath.Join(t.dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	mod := fmt.Sprintf("module %s\n\ngo %s\n\nrequire %s\n\nrequire %s/arms v0.0.0\n",
		directive(pinned, "module"), directive(pinned, "go"), t.require, modulePath)
	for _, own := range []string{"", "/arms", "/serve", "/serve/compress", "/serve/proxy/gateway", "/serve/redislimit", "/serve/tracing"} {
		mod += fmt.Sprintf("\nreplace %s%s => %q\n", modulePath, own, filepath.Join(t.dir, "..", "..", own))
	}
	cache, err := b.cache()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "mod", t.name+"-"+digest(mod))
	path := filepath.Join(dir, "go.mod")
	if _, err := os.Stat(path); err == nil {
		return []string{"-mod=mod", "-modfile=" + path}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := errors.Join(os.WriteFile(part, []byte(mod), 0o644), os.Rename(part, path)); err != nil {
		return nil, fmt.Errorf("writing the version's go.mod: %w", err)
	}
	return []string{"-mod=mod", "-modfile=" + path}, nil
}
