// Package source finds tare's own source for a binary that was installed without it.
//
// The arms that come with tare are built from source, as is what serve needs. The source
// is several modules, of which some use others by folder ("replace … => .."). Where the
// module cache keeps them, those folders do not exist. [Fetch] therefore copies them all
// into one tree, as in the repository.
package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"

	"golang.org/x/mod/module"
)

const modulePath = "github.com/tarehq/tare"

// folders are the repository's modules, by their folders, outer ones first.
var folders = []string{"", "/serve", "/serve/compress", "/serve/proxy/gateway", "/serve/redislimit", "/serve/tracing", "/arms", "/arms/rivals", "/web", "/kube"}

// Fetch returns the folder of the source that this binary was built from. The first call
// for a version downloads it, through the go command and thus by its settings.
func Fetch(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for tare's source: %w", err)
	}
	return fetch(ctx, cli.Version(), filepath.Join(cache, "tare", "source"))
}

// fetch keeps the source of a version below a folder.
func fetch(ctx context.Context, version, home string) (string, error) {
	const clone = "clone https://" + modulePath + " and start tare in the clone; run, ab, gate, calibrate and selftest also take its folder by --module"
	if version == "(devel)" || strings.HasSuffix(version, "+dirty") {
		return "", &cli.Failure{Status: cli.ExitFailed, Hint: clone,
			Err: fmt.Errorf("finding tare's source: tare %s was built in a checkout, and this folder is not in one", version)}
	}
	root := filepath.Join(home, version)
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	err := assemble(ctx, version, root)
	switch {
	case err == nil:
		return root, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("fetching tare's source: %w", ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return "", &cli.Failure{Status: cli.ExitFailed, Hint: "install Go 1.26 or later from https://go.dev/dl and put it in PATH",
			Err: fmt.Errorf("fetching tare's source: %w", err)}
	}
	return "", &cli.Failure{Status: cli.ExitFailed, Hint: clone, Err: fmt.Errorf("fetching the source of tare %s: %w", version, err)}
}

// assemble downloads the modules and puts the tree in its place once it is whole.
func assemble(ctx context.Context, version, root string) error {
	modules, err := download(ctx, version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(root), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	tree := filepath.Join(work, "tree")
	for _, folder := range folders {
		if err := os.CopyFS(filepath.Join(tree, filepath.FromSlash(folder)), os.DirFS(modules[modulePath+folder])); err != nil {
			return fmt.Errorf("copying %s: %w", modulePath+folder, err)
		}
	}
	err = os.Rename(tree, root)
	if _, found := os.Stat(root); found == nil {
		return nil // perhaps another process was faster
	}
	return err
}

// download returns the folders of the modules at a version, by their paths.
func download(ctx context.Context, version string) (map[string]string, error) {
	if module.IsPseudoVersion(version) {
		// Each module's name for a commit depends on that module's tags.
		commit, err := module.PseudoVersionRev(version)
		if err != nil {
			return nil, err
		}
		version = commit
	}
	args := []string{"mod", "download", "-json"}
	for _, folder := range folders {
		args = append(args, modulePath+folder+"@"+version)
	}
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GO111MODULE=on")
	cmd.Stdout, cmd.Stderr = &out, &complaints
	failed := cmd.Run()
	dirs := map[string]string{}
	for dec := json.NewDecoder(&out); ; {
		var m struct{ Path, Dir, Error string }
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the output of go mod download: %w", err)
		}
		if m.Error != "" {
			first, _, _ := strings.Cut(m.Error, "\n")
			return nil, errors.New(first)
		}
		dirs[m.Path] = m.Dir
	}
	if failed != nil {
		return nil, fmt.Errorf("go mod download: %w: %s", failed, bytes.TrimSpace(complaints.Bytes()))
	}
	return dirs, nil
}
