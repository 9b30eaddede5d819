package cli_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// written writes a text to a file.
func written(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// modeOfNew returns the mode that files have here which are made with none of their own.
func modeOfNew(t *testing.T) fs.FileMode {
	t.Helper()
	f, err := os.Create("new")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestKeepFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"old", "target"} {
		if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "target", "dangling": "later"} {
		if err := os.Symlink(to, name); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	ours := modeOfNew(t)
	for _, tt := range []struct {
		path, file string
		mode       fs.FileMode
	}{
		{"fresh", "fresh", ours},
		{"old", "old", 0o600},
		{"link", "target", 0o600},
		{"dangling", "later", ours},
	} {
		if err := cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: tt.path}}); err != nil {
			t.Errorf("%s: %v", tt.path, err)
		}
		if err := cli.WriteFile(tt.path, written("new")); err != nil {
			t.Errorf("%s: %v", tt.path, err)
		}
		got, err := os.ReadFile(tt.file)
		if err != nil || string(got) != "new" {
			t.Errorf("%s: %s holds %q (%v), want new", tt.path, tt.file, got, err)
		}
		if info, err := os.Stat(tt.file); err == nil && info.Mode().Perm() != tt.mode {
			t.Errorf("%s: %s has mode %v, want %v", tt.path, tt.file, info.Mode(), tt.mode)
		}
	}
	for _, name := range []string{"link", "dangling"} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s is no link any more (%v)", name, err)
		}
	}
	left, err := filepath.Glob(".tare-*")
	if len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKeepFileRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("sealed", []byte("old"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"sealed":  "may only be read",
		"folder":  "that is a folder",
		"none/it": "there is no folder none",
		"-":       "standard output has the result already",
	} {
		if err := cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: path}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if err := cli.WriteFile("sealed", written("new")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("sealed: got %v, want no permission", err)
	}
	if got, err := os.ReadFile("sealed"); err != nil || string(got) != "old" {
		t.Errorf("sealed holds %q (%v), want what it held", got, err)
	}
}

// No result is written over another, nor over what is read.
func TestWritableTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("old", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("old", "link"); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	for _, tt := range []struct {
		a, b, read, want string
	}{
		{"new", "other", "old", ""},
		{"new", "./new", "", "--csv and --hdr are the same file"},
		{"old", "link", "", "--csv and --hdr are the same file"},
		{"new", "link", "old", "--hdr link: that file is read"},
		{os.DevNull, os.DevNull, "", ""},
		{"", "", "", ""},
	} {
		err := cli.CheckOutputs([]cli.Output{{Flag: "--csv", Path: tt.a}, {Flag: "--hdr", Path: tt.b}}, tt.read)
		if got := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && !strings.Contains(got, tt.want) {
			t.Errorf("%s, %s, reading %s: got %v, want %q", tt.a, tt.b, tt.read, err, tt.want)
		}
	}
}

// A file that could not be written whole is as it was, and nothing lies beside it.
func TestKeepFileHalf(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := cli.WriteFile(path, func(w io.Writer) error {
		fmt.Fprint(w, "ha")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("it holds %q (%v), want what it held", got, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("beside it lie %v (%v)", all, err)
	}
}
