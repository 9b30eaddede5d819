package tare_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	modules "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// moduleDirs are the directories of this repository's modules.
var moduleDirs = []string{".", "arms", "arms/rivals", "serve"}

// TestModules finds every module that the tests of the layout look at, and no other,
// and keeps the ones that others require free of what no proxy has.
func TestModules(t *testing.T) {
	var found []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			found = append(found, filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(found); !slices.Equal(found, moduleDirs) {
		t.Errorf("found the modules %q, want %q", found, moduleDirs)
	}
	for dir, refused := range map[string][]string{".": {"replace", module + "/"}, "serve": {"replace", "require"}} {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range refused {
			if bytes.Contains(mod, []byte(word)) {
				t.Errorf("%s/go.mod has %q: others could not require or install the module", dir, word)
			}
		}
	}
}

// usesServe is a program that uses all that serve has.
const usesServe = `package main

import (
	"net/http"
	"os"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/flight"
	"github.com/tarehq/tare/serve/router"
	"github.com/tarehq/tare/serve/servetest"
)

var _, _, _ = &serve.Server{}, chain.Chain{}, flight.Options{}

func main() {
	rt := new(router.Router)
	rt.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	s := servetest.NewServer(rt)
	defer s.Close()
	if res, err := http.Get(s.URL); err != nil || res.StatusCode != http.StatusOK {
		os.Exit(1)
	}
}
`

// TestServeAlone publishes serve on a proxy and gets it into a fresh program, as its
// users do: the program's go.mod gains one line.
func TestServeAlone(t *testing.T) {
	const version = "v0.1.0"
	serve := modules.Version{Path: module + "/serve", Version: version}
	proxy, program := t.TempDir(), t.TempDir()
	published := filepath.Join(proxy, serve.Path, "@v")
	if err := os.MkdirAll(published, 0o755); err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if err := zip.CreateFromDir(&content, serve, "serve"); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("serve/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{
		filepath.Join(published, version+".zip"):  content.Bytes(),
		filepath.Join(published, version+".mod"):  mod,
		filepath.Join(published, version+".info"): []byte(`{"Version": "` + version + `"}`),
		filepath.Join(program, "go.mod"):          []byte("module example.com/fresh\n\ngo 1.26.0\n"),
		filepath.Join(program, "main.go"):         []byte(usesServe),
	} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"get", serve.Path + "@" + version}, {"mod", "tidy"}, {"run", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = program
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw", "GOSUMDB=off",
			"GOPROXY=file://"+filepath.ToSlash(proxy), "GOMODCACHE="+filepath.Join(t.TempDir(), "modules"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	got, err := os.ReadFile(filepath.Join(program, "go.mod"))
	if want := "module example.com/fresh\n\ngo 1.26.0\n\nrequire " + serve.Path + " " + version + "\n"; err != nil || string(got) != want {
		t.Errorf("got the go.mod %q, %v, want %q", got, err, want)
	}
}
