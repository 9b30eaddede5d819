package variant

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// joinWorkspace has builds in the worktree find what builds in the folder from find beside
// the commit: a go.work that Git does not hold, and modules that do not lie in the
// repository. Paths in go.work and go.mod stay as they are, so that equal source still gives
// equal programs. What cannot be had is left to the build, which names it.
func (c *Checkout) joinWorkspace(ctx context.Context, from string) {
	out, err := goCommand(ctx, from, nil, "env", "GOWORK")
	if err != nil {
		return
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == "off" {
		if out, err = goCommand(ctx, c.Dir, nil, "env", "GOMOD"); err == nil {
			c.linkNamed(ctx, "mod", strings.TrimSpace(string(out)))
		}
		return
	}
	dir, err := resolve(filepath.Dir(file))
	if err != nil {
		return
	}
	at := filepath.Join(c.mirror(dir), filepath.Base(file))
	if copyMissing(file, at) != nil {
		return
	}
	_ = copyMissing(file+".sum", at+".sum") // there may be none
	c.Env = []string{"GOWORK=" + at}
	for _, module := range c.linkNamed(ctx, "work", at) {
		c.linkNamed(ctx, "mod", filepath.Join(module, "go.mod"))
	}
}

// copyMissing copies a file unless there is one.
func copyMissing(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// linkNamed links what a go.work (kind "work") or go.mod ("mod") below c.root names and the
// commit lacks to where it lies. It returns the folders of the workspace's modules. Modules
// of this repository that the commit lacks are newer: they leave the workspace.
func (c *Checkout) linkNamed(ctx context.Context, kind, file string) (modules []string) {
	dir, ok := c.original(filepath.Dir(file))
	if !ok {
		return nil
	}
	out, err := goCommand(ctx, c.Dir, nil, kind, "edit", "-json", file)
	var named struct {
		Use     []struct{ DiskPath string }
		Replace []struct {
			New struct{ Path, Version string }
		}
	}
	if err != nil || json.Unmarshal(out, &named) != nil {
		return nil
	}
	var edits []string
	for _, use := range named.Use {
		from, at := c.places(dir, use.DiskPath)
		if !hasModule(at) && c.owns(ctx, from) {
			edits = append(edits, "-dropuse="+use.DiskPath)
			continue
		}
		c.link(ctx, from, at)
		if filepath.IsAbs(use.DiskPath) && at != from {
			edits = append(edits, "-dropuse="+use.DiskPath, "-use="+at)
		}
		modules = append(modules, at)
	}
	for _, r := range named.Replace {
		if r.New.Version == "" { // a folder
			from, at := c.places(dir, r.New.Path)
			c.link(ctx, from, at)
		}
	}
	if len(edits) > 0 {
		_, _ = goCommand(ctx, c.Dir, nil, append(append([]string{"work", "edit"}, edits...), file)...)
	}
	return modules
}

// places are where a folder lies that a file in dir names, and where builds in the worktree
// look for it. Whole paths are the same for both, except those into the repository.
func (c *Checkout) places(dir, path string) (from, at string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	} else if !isWithin(c.top, path) {
		return path, path
	}
	return path, c.mirror(path)
}

// link makes the folder of a module appear below c.root, unless one is there: that of a Git
// submodule as the commit has it, others as they are on disk.
func (c *Checkout) link(ctx context.Context, from, at string) {
	parent, err := resolve(filepath.Dir(at))
	if err != nil || !isWithin(c.root, parent) || hasModule(at) || !hasModule(from) {
		return // parent may be elsewhere by a link
	}
	within, err := c.addSubmodule(ctx, from)
	c.lacks = cmp.Or(c.lacks, err)
	if !within && os.MkdirAll(parent, 0o755) == nil {
		_ = os.Remove(at) // which a folder with files survives
		_ = os.Symlink(from, at)
	}
}

// gitlink is the mode of a submodule in a tree of Git.
const gitlink = "160000"

// addSubmodule clones the submodule that a folder lies in into its place below c.root, at the
// commit that c.Commit names: on disk it may be at another. It reports whether there is one.
func (c *Checkout) addSubmodule(ctx context.Context, dir string) (bool, error) {
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil || top == c.top || !isWithin(c.top, top) {
		return false, nil
	}
	rel, err := filepath.Rel(c.top, top)
	if err != nil {
		return false, err
	}
	listed, err := git(ctx, c.top, "ls-tree", c.Commit, rel)
	entry := strings.Fields(listed) // mode, type, hash and name
	if err != nil || len(entry) < 4 || entry[0] != gitlink {
		return false, err
	}
	at := c.mirror(top)
	if isDir(filepath.Join(at, ".git")) {
		return true, nil // cloned for another of its modules
	}
	if _, err = git(ctx, c.top, "clone", "--quiet", "--shared", "--no-checkout", top, at); err == nil {
		_, err = git(ctx, at, "checkout", "--quiet", "--detach", entry[2])
	}
	if err != nil {
		return true, fmt.Errorf("submodule %s: %w (git -C %s fetch gets the commits that it lacks)", rel, err, top)
	}
	return true, nil
}

// owns reports whether a folder is of this repository, not of one within it.
func (c *Checkout) owns(ctx context.Context, dir string) bool {
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	return err == nil && top == c.top
}

// mirror is where a path lies below c.root.
func (c *Checkout) mirror(path string) string {
	return filepath.Join(c.root, strings.TrimPrefix(path, filepath.VolumeName(path)))
}

// original is the path that mirror makes another of; false where it makes none.
func (c *Checkout) original(path string) (string, bool) {
	if !isWithin(c.root, path) {
		return "", false
	}
	return filepath.Join(filepath.VolumeName(c.top)+string(filepath.Separator), strings.TrimPrefix(path, c.root)), true
}

// isWithin reports whether a path is a folder or lies in it.
func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func hasModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
