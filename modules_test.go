package tare_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	modules "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// moduleDirs are the directories of this repository's modules.
var moduleDirs = []string{".", "arms", "arms/rivals", "examples/api", "kube", "serve", "serve/compress", "serve/proxy/gateway", "serve/redislimit", "serve/tracing", "web"}

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
	serve := modules.Version{Path: module + "/serve", Version: version}
	proxy, program := t.TempDir(), t.TempDir()
	publish(t, proxy, serve, "serve")
	for path, text := range map[string]string{
		"go.mod":  "module example.com/fresh\n\ngo 1.26.0\n",
		"main.go": usesServe,
	} {
		if err := os.WriteFile(filepath.Join(program, path), []byte(text), 0o644); err != nil {
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

// publish puts the module in a folder on a proxy of files.
func publish(t *testing.T, proxy string, m modules.Version, dir string) {
	t.Helper()
	published := filepath.Join(proxy, m.Path, "@v")
	if err := os.MkdirAll(published, 0o755); err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if err := zip.CreateFromDir(&content, m, dir); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"list": []byte(m.Version + "\n"), m.Version + ".info": []byte(`{"Version": "` + m.Version + `"}`),
		m.Version + ".zip": content.Bytes(), m.Version + ".mod": mod,
	} {
		if err := os.WriteFile(filepath.Join(published, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// version is what the modules require of each other.
const version = "v0.1.0"

// publishAll publishes the modules on a proxy, and returns what runs a command in a folder
// as those do who have them from there. What the commands keep is below home.
func publishAll(t *testing.T, home, folder string) func(name string, args ...string) (output string, err error) {
	t.Helper()
	proxy := t.TempDir()
	for _, dir := range moduleDirs {
		publish(t, proxy, modules.Version{Path: path.Join(module, dir), Version: version}, dir)
	}
	where, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.Fields(string(where))
	environment := append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off", "GOBIN="+home, "GOCACHE="+settings[1],
		"GOMODCACHE="+filepath.Join(home, "modules"), "XDG_CACHE_HOME="+filepath.Join(home, "cache"),
		"GOPROXY=file://"+proxy+",file://"+settings[0]+"/cache/download,"+settings[2])
	return func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = folder, environment
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// usesBeside is a program that uses the modules beside serve.
const usesBeside = `package main

import (
	"github.com/tarehq/tare/serve/compress"
	"github.com/tarehq/tare/serve/redislimit"
	"github.com/tarehq/tare/serve/tracing"
)

var _, _, _ = compress.New, redislimit.New, tracing.New

func main() {}
`

// TestServeBeside gets the modules that build on serve into a fresh program, as their users do.
// Each then requires a serve that is there: what replaces it in this repository does not count.
func TestServeBeside(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a user's program: compiles the encoders, a client of Redis and OpenTelemetry")
	}
	program := t.TempDir()
	perform := publishAll(t, t.TempDir(), program)
	for name, text := range map[string]string{"go.mod": "module example.com/fresh\n\ngo 1.26.0\n", "main.go": usesBeside} {
		if err := os.WriteFile(filepath.Join(program, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	get := []string{"get"}
	for _, dir := range []string{"compress", "redislimit", "tracing"} {
		get = append(get, module+"/serve/"+dir+"@"+version)
	}
	for _, args := range [][]string{get, {"run", "."}} {
		if out, err := perform("go", args...); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	out, err := perform("go", "list", "-m", module+"/serve")
	if want := module + "/serve " + version + "\n"; err != nil || out != want {
		t.Errorf("go list -m: got %q, %v, want %q", out, err, want)
	}
}

// TestInstalled publishes the modules on a proxy, installs tare from it, and runs a study
// of rivals in an empty folder. The binary gets the arms' source from the proxy.
func TestInstalled(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("SKIPPED: an installed tare: builds the command and three arms, on Linux")
	}
	home, empty := t.TempDir(), t.TempDir()
	perform := publishAll(t, home, empty)
	if out, err := perform("go", "install", module+"/cmd/tare@"+version); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
	// chi is built with the versions of arms/rivals, gin-1.9 with a go.mod of its own.
	out, err := perform(filepath.Join(home, "tare"), "run", "--arms", "chi,gin-1.9", "--workloads", "half", "--blocks", "1", "frameworks")
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 4 {
		err = nil // too short to decide, and long enough to start every arm
	}
	for _, want := range []string{"nethttp", "chi", "gin-1.9", "report: "} {
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("tare run in an empty folder: %v, want %q in the output:\n%s", err, want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "cache", "tare", "source", version, "arms", "rivals", "go.mod")); err != nil {
		t.Errorf("the source is not kept: %v", err)
	}
}
