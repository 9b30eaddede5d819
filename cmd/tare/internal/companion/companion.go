// Package companion finds and runs programs of tare's other modules.
//
// They lie beside tare where a release put them there. Elsewhere they are built from tare's
// source and kept in the cache, as arms are.
package companion

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/source"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// Program is a companion, by its package in tare's source.
type Program string

// The companions.
const (
	Web   Program = "./web/cmd/tare-web"
	Kube  Program = "./kube/cmd/tare-kube"
	Proxy Program = "./serve/proxy/gateway"
)

// name is that of the program's file in a release.
func (p Program) name() string {
	if p == Proxy {
		return "tare-proxy" // that it is tare's, its folder alone says
	}
	return path.Base(string(p))
}

// releases are the versions that have an image.
var releases = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// Image is that of a release of tare, which holds the companions, too; "" of another version.
func Image(version string) string {
	if !releases.MatchString(version) {
		return ""
	}
	return "ghcr.io/tarehq/tare:" + strings.TrimPrefix(version, "v")
}

// Run runs a companion until it ends. It has tare's outputs. An interruption reaches it as
// one. Its status, if not 0, is that of the error.
func Run(ctx context.Context, t *cli.Terminal, p Program, args []string) error {
	file, err := p.Find(ctx, t)
	if err != nil {
		return err
	}
	return p.run(ctx, t, file, args)
}

// Find returns the program's path, once it is there.
func (p Program) Find(ctx context.Context, t *cli.Terminal) (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside, ok := p.beside(self); ok {
			return beside, nil
		}
	}
	slow := time.AfterFunc(2*time.Second, func() {
		t.Note("building %s from source, which takes a minute or two the first time …", p.name())
	})
	defer slow.Stop()
	b := &arm.Builder{FetchSource: source.Fetch}
	built, err := b.Build(ctx, study.Arm{Go: string(p)})
	if err != nil {
		return "", fmt.Errorf("building %s: %w", p.name(), err)
	}
	return built.Path, nil
}

// beside is the program in the folder of tare's own file, where it is there.
func (p Program) beside(self string) (string, bool) {
	name := p.name()
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	file := filepath.Join(filepath.Dir(self), name)
	fi, err := os.Stat(file)
	return file, err == nil && fi.Mode().IsRegular() && (runtime.GOOS == "windows" || fi.Mode()&0o111 != 0)
}

// patience is how long the program may take to end: less than tare itself has.
const patience = 15 * time.Second

func (p Program) run(ctx context.Context, t *cli.Terminal, file string, args []string) error {
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, t.Out, t.Err
	cmd.Cancel = func() error {
		if runtime.GOOS == "windows" {
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	cmd.WaitDelay = patience
	err := cmd.Run()
	exit := (*exec.ExitError)(nil)
	switch {
	case cmd.ProcessState != nil && cmd.ProcessState.Success(): // ended as asked, though ctx may have ended too
		return nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return &cli.Failure{Status: exit.ExitCode()} // it said why
	case ctx.Err() != nil:
		return fmt.Errorf("%s did not end within %v: %w", p.name(), patience, ctx.Err())
	case err != nil:
		return fmt.Errorf("running %s: %w", p.name(), err)
	}
	return nil
}
