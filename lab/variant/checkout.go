package variant

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Checkout is the source of a program at another commit, in a Git worktree.
type Checkout struct {
	Dir    string // the program's folder at that commit
	Commit string // whole hash
	// Env is NAME=value that builds there need: GOWORK, in a workspace.
	Env []string

	top  string // of the repository
	root string // stands for the file system's: the worktree lies below it as the repository does below /

	lacks error // why a submodule is not as the commit has it
}

// NewCheckout checks out the commit that ref names into a worktree below work, an
// existing folder without links in its path. dir is a folder of the repository; it need not
// exist in the working tree, but must in the commit. Builds find the workspace and the
// modules beside the repository that builds in dir find. The caller must call Remove.
func NewCheckout(ctx context.Context, dir, ref, work string) (*Checkout, error) {
	parent := dir
	for !isDir(parent) && filepath.Dir(parent) != parent { // it may be gone by now
		parent = filepath.Dir(parent)
	}
	top, err := git(ctx, parent, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("checking out %s: %w", ref, err)
	}
	commit, err := git(ctx, parent, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil {
		fetch := "git fetch gets what only a remote has"
		if shallow, _ := git(ctx, parent, "rev-parse", "--is-shallow-repository"); shallow == "true" {
			fetch = "the clone is shallow: git fetch --unshallow gets the rest"
		}
		return nil, fmt.Errorf("checking out %s: %w", ref, cmp.Or(ctx.Err(),
			fmt.Errorf("no such branch, tag or commit in %s (git branch -a and git tag list them; %s)", top, fetch)))
	}
	inside, err := relative(top, dir)
	if err != nil {
		return nil, fmt.Errorf("checking out %s: %w", ref, err)
	}
	c := &Checkout{Commit: commit, top: top, root: filepath.Join(work, "tree-"+commit[:12])}
	if _, err := git(ctx, top, "worktree", "add", "--detach", "--force", c.mirror(top), commit); err != nil {
		return nil, errors.Join(fmt.Errorf("checking out %s: %w", ref, err), c.Remove())
	}
	c.Dir = filepath.Join(c.mirror(top), inside)
	if !isDir(c.Dir) {
		return nil, errors.Join(fmt.Errorf("checking out %s: %s is not there at that commit", ref, inside), c.Remove())
	}
	c.joinWorkspace(ctx, parent)
	if c.lacks != nil {
		return nil, errors.Join(fmt.Errorf("checking out %s: %w", ref, c.lacks), c.Remove())
	}
	return c, nil
}

// Remove removes the worktree, also after the context of NewCheckout has ended.
func (c *Checkout) Remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, _ = git(ctx, c.top, "worktree", "unlock", c.mirror(c.top)) // an interrupted add leaves it locked, which prune keeps
	err := os.RemoveAll(c.root)                                   // of links, not of what they lead to
	_, pruned := git(ctx, c.top, "worktree", "prune")
	return errors.Join(err, pruned)
}

// relative is dir as seen from top, links resolved as far as dir exists.
func relative(top, dir string) (string, error) {
	dir, err := resolve(dir)
	if err != nil {
		return "", err
	}
	return filepath.Rel(top, dir)
}

// resolve is the absolute path of a folder, links resolved as far as it exists.
func resolve(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	rest := ""
	for at := dir; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest), nil
		}
		if filepath.Dir(at) == at {
			return dir, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// git runs Git in a folder, without the repository's hooks, and returns the first line that it
// printed. Once ctx has ended, Git may tidy up. The repository is that of the folder, also within
// a hook, where Git's variables name one and its index.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=" + os.DevNull}, args...)...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(ofHooks, name)
	})
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 5*time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w", args[0], cmp.Or(ctx.Err(), err))
		if why := strings.TrimSpace(said.String()); why != "" { // nothing without Git itself
			err = fmt.Errorf("%w: %s", err, why)
		}
		return "", err
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), nil
}

// ofHooks are the variables by which Git tells a hook where it runs.
var ofHooks = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}
