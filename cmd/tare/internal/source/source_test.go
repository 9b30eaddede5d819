package source

import (
	"bytes"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// serveFiles makes a proxy of files that has small modules of these paths, each at a version
// that can also be asked for by another name.
func serveFiles(t *testing.T, version, query string) {
	t.Helper()
	proxy, dir := t.TempDir(), t.TempDir()
	for _, folder := range folders {
		m := module.Version{Path: modulePath + folder, Version: version}
		mod := []byte("module " + m.Path + "\n\ngo 1.26.0\n\nreplace " + modulePath + " => ../..\n")
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644); err != nil {
			t.Fatal(err)
		}
		var content bytes.Buffer
		if err := zip.CreateFromDir(&content, m, dir); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{
			version + ".mod": mod, version + ".zip": content.Bytes(), query + ".info": []byte(`{"Version": "` + version + `"}`),
		} {
			if err := os.WriteFile(filepath.Join(at, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", filepath.Join(t.TempDir(), "modules"))
	t.Cleanup(func() { makeRemovable(os.Getenv("GOMODCACHE")) })
}

// makeRemovable has the folders of a module cache, which are read-only, be removable.
func makeRemovable(cache string) {
	_ = filepath.WalkDir(cache, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return err
	})
}

func TestFetch(t *testing.T) {
	for version, query := range map[string]string{
		"v0.9.0":                               "v0.9.0",
		"v0.9.1-0.20261124101112-0123456789ab": "0123456789ab", // a commit: serve has other tags
	} {
		t.Run(version, func(t *testing.T) {
			serveFiles(t, version, query)
			home := t.TempDir()
			root, err := fetch(t.Context(), version, home)
			if err != nil || root != filepath.Join(home, version) {
				t.Fatalf("got %q, %v, want a folder below %q", root, err, home)
			}
			for _, folder := range folders {
				got, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
				if want := "module " + path.Join(modulePath, folder) + "\n"; err != nil || !strings.HasPrefix(string(got), want) {
					t.Errorf("%s/go.mod is %q, %v, want it to begin with %q", folder, got, err, want)
				}
			}
			t.Setenv("GOPROXY", "off")
			makeRemovable(os.Getenv("GOMODCACHE"))
			if err := os.RemoveAll(os.Getenv("GOMODCACHE")); err != nil {
				t.Fatal(err)
			}
			if again, err := fetch(t.Context(), version, home); err != nil || again != root {
				t.Errorf("the second time got %q, %v, want what is kept", again, err)
			}
		})
	}
}

// TestFetchFails wants one line that says why, and one that says what to do.
func TestFetchFails(t *testing.T) {
	serveFiles(t, "v0.9.0", "v0.9.0")
	for version, want := range map[string]string{
		"(devel)":      "built in a checkout",
		"v0.9.0+dirty": "built in a checkout",
		"v0.9.1":       "fetching the source of tare v0.9.1: github.com/tarehq/tare@v0.9.1",
	} {
		home := t.TempDir()
		_, err := fetch(t.Context(), version, home)
		var f *cli.Failure
		if !errors.As(err, &f) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.Contains(f.Hint, "--module") {
			t.Errorf("%s: got %v, want one line with %q and a hint", version, err, want)
		}
		if left, _ := os.ReadDir(home); len(left) > 0 {
			t.Errorf("%s: %v is left behind", version, left)
		}
	}
	t.Setenv("PATH", t.TempDir())
	var f *cli.Failure
	if _, err := fetch(t.Context(), "v0.9.0", t.TempDir()); !errors.As(err, &f) || !strings.Contains(f.Hint, "install Go") {
		t.Errorf("without the go command: got %v", err)
	}
}
