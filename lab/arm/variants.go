package arm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/variant"
)

// compileVariant compiles a target at its commit and with its variants.
func (b *Builder) compileVariant(ctx context.Context, t target, p Program) (e executable, err error) {
	if t.ref == "" && t.with == "" {
		return b.compile(ctx, t)
	}
	work, err := os.MkdirTemp("", "tare-build-")
	if err != nil {
		return executable{}, fmt.Errorf("%w: %w", ErrNoCache, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if t.work, err = filepath.EvalSymlinks(work); err != nil {
		return executable{}, err
	}
	if t.ref != "" {
		c, err := variant.NewCheckout(ctx, t.dir, t.ref, t.work)
		if err != nil {
			return executable{}, err
		}
		defer func() { err = errors.Join(err, c.Remove()) }()
		t.dir, t.how = c.Dir, strings.Join(append(c.Env, t.how), "\n")
	}
	variants, err := variant.ParseAll(strings.Fields(t.with))
	if err != nil {
		return executable{}, err
	}
	o := variant.Options{Dir: t.dir, Work: t.work, Settings: strings.Split(t.how, "\n")}
	if slices.ContainsFunc(variants, func(v variant.Variant) bool { return v.Kind == variant.Serve }) {
		root, err := b.root(ctx)
		if err != nil {
			return executable{}, err
		}
		o.ServeModule = filepath.Join(root, "serve")
	}
	if slices.ContainsFunc(variants, func(v variant.Variant) bool { return v.Kind == variant.PGO }) {
		if o.Profile, err = b.profile(ctx, t, variants, o, p); err != nil {
			return executable{}, err
		}
	}
	return b.compileWith(ctx, t, variants, o)
}

// compileWith compiles a target with variants of its build.
func (b *Builder) compileWith(ctx context.Context, t target, variants []variant.Variant, o variant.Options) (executable, error) {
	how, err := variant.Apply(ctx, variants, o)
	if err != nil {
		return executable{}, err
	}
	t.how = strings.Join(append(append(strings.Split(t.how, "\n"), how.Flags...), how.Env...), "\n")
	return b.compile(ctx, t)
}

// profile returns a CPU profile of the target under load. The profile is kept for the
// program and the load that it was taken of, so that a run that goes on builds the same
// program.
func (b *Builder) profile(ctx context.Context, t target, variants []variant.Variant, o variant.Options, p Program) (string, error) {
	if b.TakeProfile == nil {
		return "", errors.New("building with pgo: only a study's arms are profiled")
	}
	e, err := b.compileWith(ctx, t, variants, o)
	if err != nil {
		return "", fmt.Errorf("building the program to be profiled: %w", err)
	}
	cache, err := b.cache()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoCache, err)
	}
	path := filepath.Join(cache, "pgo", e.id[:16]+"-"+digest(b.Load)+".pgo")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	err = os.MkdirAll(filepath.Dir(path), 0o755)
	dir, none := os.MkdirTemp(filepath.Dir(path), unfinished)
	if err := cmp.Or(err, none); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoCache, err)
	}
	defer os.RemoveAll(dir)
	taken := filepath.Join(dir, "cpu.pgo")
	e.describe(&p)
	p.Env = append(p.Env, variant.ProfileVariable+"="+taken)
	if err := b.TakeProfile(ctx, p, taken); err != nil {
		return "", fmt.Errorf("taking the profile for pgo: %w", err)
	}
	return path, os.Rename(taken, path)
}
