package variant

import (
	"context"
	"path/filepath"
	"strings"
)

// Bases are the commits that work in a folder is usually compared with, by name: the default
// branch, then the newest tag. Those that lack the folder are left out; a folder in no
// repository has none.
func Bases(ctx context.Context, dir string) []string {
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil
	}
	inside, err := relative(top, dir)
	if err != nil {
		return nil
	}
	var names []string
	if head, err := git(ctx, dir, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"); err == nil {
		names = append(names, strings.TrimPrefix(head, "origin/"), head)
	}
	names = append(names, "main", "master")
	for i, name := range names {
		if _, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}"); err == nil {
			names = names[i : i+1]
			break
		}
	}
	if tag, err := git(ctx, dir, "describe", "--tags", "--abbrev=0"); err == nil {
		names = append(names, tag)
	}
	var bases []string
	for _, name := range names {
		if _, err := git(ctx, top, "cat-file", "-e", name+":"+strings.TrimPrefix(filepath.ToSlash(inside)+"/", "./")); err == nil {
			bases = append(bases, name)
		}
	}
	return bases
}
