package arm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	keepFor     = 7 * 24 * time.Hour // how long an executable that is no longer built stays in the cache
	outputLines = 20                 // of a failed build
	unfinished  = "new-"             // prefix of directories in which a build goes on or broke off
)

// executable is what is known of a program's file.
type executable struct {
	path, id string
	goes     string            // toolchain; "" = not a Go program
	modules  map[string]string // versions
	file     os.FileInfo       // as it was then
}

func (e executable) describe(p *Program) {
	p.Path, p.BuildID, p.Go, p.Modules, p.file = e.path, e.id, e.goes, e.modules, e.file
}

// same refuses a program whose file is not any more what it was when it was
// identified: a user may build anew, under the same name, while a run goes on.
func (p *Program) same() error {
	if p.file == nil {
		return nil
	}
	now, err := os.Stat(p.Path)
	if err != nil {
		return err
	}
	if os.SameFile(p.file, now) && now.Size() == p.file.Size() && now.ModTime().Equal(p.file.ModTime()) {
		return nil
	}
	e, err := inspect(p.Path)
	if err != nil {
		return err
	}
	if e.id != p.BuildID {
		return fmt.Errorf("%s is another program by now (build ID %.12s… was %.12s…): give each run a copy of its own", p.Path, e.id, p.BuildID)
	}
	return nil
}

// inspect identifies the file and reads what the Go linker left in it.
func inspect(path string) (executable, error) {
	f, err := os.Open(path)
	if err != nil {
		return executable{}, fmt.Errorf("identifying the program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	file, unknown := f.Stat()
	if err := errors.Join(err, unknown); err != nil {
		return executable{}, fmt.Errorf("identifying the program: %w", err)
	}
	e := executable{path: path, id: hex.EncodeToString(h.Sum(nil)), file: file}
	info, err := buildinfo.Read(f)
	if err != nil {
		return e, nil // not built by Go
	}
	e.goes, e.modules = info.GoVersion, map[string]string{}
	for _, m := range info.Deps {
		v := m.Version
		if m.Replace != nil && m.Replace.Version != "" {
			v = m.Replace.Version
		}
		e.modules[m.Path] = v
	}
	return e, nil
}

// compile builds the target into the cache, from where a run's trials start
// it: what is built later, by this run or another, gets a path of its own.
func (b *Builder) compile(ctx context.Context, t target) (executable, error) {
	home, tmp, err := b.room(t)
	if err != nil {
		return executable{}, fmt.Errorf("%w: %w", ErrNoCache, err)
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, t.name)
	if last := newest(home, t.name); whole(last) {
		_ = os.Link(last, out) // the go command leaves an output alone that is up to date; else it links anew
	}
	if err := b.goBuild(ctx, t, out); err != nil {
		return executable{}, err
	}
	e, err := inspect(out)
	if err != nil {
		return executable{}, err
	}
	dir, now := filepath.Join(home, e.id[:16]), time.Now()
	e.path = filepath.Join(dir, t.name)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Rename(out, e.path), os.Chtimes(dir, now, now)); err != nil {
		return executable{}, fmt.Errorf("keeping the executable: %w", err)
	}
	prune(home, now.Add(-keepFor))
	return e, nil
}

// room is the target's folder in the cache, and one in it for what is being built.
func (b *Builder) room(t target) (home, tmp string, err error) {
	cache, err := b.cache()
	if err != nil {
		return "", "", err
	}
	about := strings.Join([]string{t.dir, t.pkg, t.require, t.version, t.how, t.ref, t.with}, "\x00")
	home = filepath.Join(cache, "bin", t.name+"-"+digest(strings.ReplaceAll(about, t.work, "")))
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", "", err
	}
	tmp, err = os.MkdirTemp(home, unfinished)
	return home, tmp, err
}

func (b *Builder) cache() (string, error) {
	if b.Cache != "" {
		return filepath.Abs(b.Cache)
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "tare"), err
}

// goBuild runs the go command. Executables do not hold paths or commits, so
// that the same source gives the same bytes.
func (b *Builder) goBuild(ctx context.Context, t target, out string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("the go command: %w (install Go 1.26 or later from https://go.dev/dl and put it in PATH)", ErrNotInstalled)
	}
	args := []string{"build", "-race=false", "-trimpath", "-buildvcs=false", "-o", out}
	cmd := exec.CommandContext(ctx, tool)
	cmd.Dir, cmd.Env = t.dir, os.Environ()
	if t.version != "" {
		// Only install builds a module by its own go.mod. It names the file itself.
		args = []string{"install", "-race=false", "-trimpath", "-buildvcs=false", "-mod=readonly"}
		cmd.Env = append(cmd.Env, "GOBIN="+filepath.Dir(out))
		t.pkg += "@" + t.version
	}
	if t.own {
		// Without C the executable is the same on machines with and without a compiler.
		cmd.Env = append(cmd.Env, "GOWORK=off", "CGO_ENABLED=0")
		mode, err := b.modFlags(t)
		if err != nil {
			return err
		}
		args = append(args, mode...)
	}
	for how := range strings.Lines(t.how) {
		how = strings.TrimSuffix(how, "\n")
		if strings.HasPrefix(how, "-") {
			args = append(args, how)
		} else {
			cmd.Env = append(cmd.Env, how)
		}
	}
	cmd.Args = append(cmd.Args, append(args, t.pkg)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = append(cmd.Env, "GOTMPDIR="+filepath.Dir(out)) // which is removed also if the go command is killed
	cmd.WaitDelay = time.Second                              // compilers of a cancelled build may hold the output open
	err = runGuarded(cmd, filepath.Dir(out))
	if ctx.Err() != nil {
		return fmt.Errorf("go %s %s: %w", args[0], t.pkg, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("go %s %s: %w%s:\n%s", args[0], t.pkg, err, remedy(output.String(), t.how), firstLines(output.String(), outputLines))
	}
	return mustRun(out)
}

// runGuarded runs a command that starts others and writes to a temporary directory.
// None of them, nor the directory, outlives tare: they have a guard, as arms do,
// where there are guards.
func runGuarded(cmd *exec.Cmd, dir string) error {
	g, err := startGuard(dir)
	if errors.Is(err, ErrNotSupported) {
		return cmd.Run()
	}
	if err != nil {
		return err
	}
	g.adopt(cmd)
	cmd.Cancel = g.kill
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the kernel takes this thread's end for tare's
		ended <- cmd.Run()
	}()
	return errors.Join(<-ended, g.end())
}

// mustRun refuses what go build leaves of a package that is not a command.
func mustRun(out string) error {
	fi, err := os.Stat(out)
	if err != nil {
		return err
	}
	if fi.Mode()&0o111 == 0 {
		return errors.New("not a command: an arm is a package main")
	}
	return nil
}

// remedy is what to do about the failures that are the machine's, not the
// source's.
func remedy(output, how string) string {
	switch {
	case !strings.Contains(output, "requires go >=") && !strings.Contains(output, "toolchain not available"):
		return ""
	case strings.Contains(how, "GOTOOLCHAIN="):
		return " (the program needs a later Go version, or this one cannot be downloaded: `go list -m -versions golang.org/toolchain` lists what can)"
	}
	return " (this Go is too old: install a later one from https://go.dev/dl, or set GOTOOLCHAIN=auto to fetch one)"
}

func firstLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = append(lines[:n:n], fmt.Sprintf("… %d more lines", len(lines)-n))
	}
	return strings.Join(lines, "\n")
}

// newest returns the executable in home that was built or used last.
func newest(home, name string) string {
	var path string
	var at time.Time
	for _, dir := range kept(home) {
		if !strings.HasPrefix(dir.Name(), unfinished) && dir.ModTime().After(at) {
			path, at = filepath.Join(home, dir.Name(), name), dir.ModTime()
		}
	}
	return path
}

// whole reports whether an executable in the cache is what its folder is named for. The go
// command looks at its beginning alone, and would call one up to date that a crash of the
// machine cut short.
func whole(path string) bool {
	e, err := inspect(path)
	return err == nil && strings.HasPrefix(e.id, filepath.Base(filepath.Dir(path)))
}

// prune removes executables last used before then. What cannot be removed
// stays; it only takes space.
func prune(home string, before time.Time) {
	for _, dir := range kept(home) {
		if dir.ModTime().Before(before) {
			_ = os.RemoveAll(filepath.Join(home, dir.Name()))
		}
	}
}

func kept(home string) []os.FileInfo {
	entries, err := os.ReadDir(home)
	if err != nil {
		return nil
	}
	var dirs []os.FileInfo
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.IsDir() {
			dirs = append(dirs, fi)
		}
	}
	return dirs
}

// digest is a short name for a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
