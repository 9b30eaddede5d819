package companion

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// script writes a shell script that stands for the program.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: scripts are those of a Unix shell")
	}
	path := filepath.Join(t.TempDir(), "tare-web")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	term := &cli.Terminal{Out: &out, Err: &out}
	if err := Web.run(t.Context(), term, script(t, `printf '%s|' "$@"`), []string{"-listen", "a b", "--", "c"}); err != nil {
		t.Fatal(err)
	}
	if want := "-listen|a b|--|c|"; out.String() != want {
		t.Errorf("the program was given %q, want %q", out.String(), want)
	}
	out.Reset()
	err := Web.run(t.Context(), term, script(t, "echo 'tare: no' >&2\nexit 7\n"), nil)
	if got := cli.PrintError(term, err); got != 7 || out.String() != "tare: no\n" {
		t.Errorf("ends with %d and prints %q, want 7 and what the program said alone", got, out.String())
	}
	if err := Web.run(t.Context(), term, filepath.Join(t.TempDir(), "none"), nil); err == nil || !strings.Contains(err.Error(), "running tare-web") {
		t.Errorf("without the program: error %v", err)
	}
}

// TestInterrupted has the program get the interruption and end by itself.
func TestInterrupted(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	program := script(t, "trap 'echo ended; exit 0' INT\n: > '"+ready+"'\nwhile :; do sleep 0.05; done\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(ready); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	var out bytes.Buffer
	if err := Web.run(ctx, &cli.Terminal{Out: &out, Err: &out}, program, nil); err != nil || out.String() != "ended\n" {
		t.Errorf("got %v and %q, want the program to end as asked", err, out.String())
	}
}

// TestReleased has each companion be in what goreleaser makes, by the name that it is looked
// for by.
func TestReleased(t *testing.T) {
	config, err := os.ReadFile("../../../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?m)ids: \[(.*)\]$`).FindAllStringSubmatch(string(config), -1)
	if len(lists) != 3 {
		t.Errorf("found %d lists of programs, want those of archives, packages and images", len(lists))
	}
	for _, p := range []Program{Web, Kube, Proxy} {
		m := regexp.MustCompile(`(?m)^ +id: ` + p.name() + `\n +dir: (\S+)\n +main: (\S+)\n +binary: ` + p.name() + `$`).FindStringSubmatch(string(config))
		if m == nil || "./"+path.Join(m[1], m[2]) != string(p) {
			t.Errorf("%s of %s is built from %q", p.name(), p, m)
		}
		for _, l := range lists {
			if !slices.Contains(strings.Split(l[1], ", "), p.name()) {
				t.Errorf("%s is not among %s", p.name(), l[1])
			}
		}
	}
}

func TestImage(t *testing.T) {
	for version, want := range map[string]string{"v1.20.3": "ghcr.io/tarehq/tare:1.20.3", "(devel)": "", "v1.0.0-rc.1": "", "v1.2.3-0.20260101000000-abcdefabcdef": ""} {
		if got := Image(version); got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}

func TestBeside(t *testing.T) {
	program := script(t, "")
	self := filepath.Join(filepath.Dir(program), "tare")
	if got, ok := Web.beside(self); !ok || got != program {
		t.Errorf("got %q, %t, want %q", got, ok, program)
	}
	link := filepath.Join(t.TempDir(), "tare")
	if err := errors.Join(os.WriteFile(self, nil, 0o755), os.Symlink(self, link)); err != nil {
		t.Fatal(err)
	}
	if got, ok := Web.beside(link); !ok || filepath.Base(filepath.Dir(got)) != filepath.Base(filepath.Dir(program)) {
		t.Errorf("through a link: got %q, %t, want %q", got, ok, program)
	}
	if err := os.Chmod(program, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, ok := Web.beside(self); ok {
		t.Errorf("got %q, which cannot run", got)
	}
}
