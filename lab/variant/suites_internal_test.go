//go:build unix

package variant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// suite is a module whose own tests start servers of net/http.
type suite struct {
	module   string // with version
	packages []string
	args     []string          // of the tests' program
	run      string            // which tests, all if empty: a pattern
	skip     string            // tests that are run on neither server: a pattern
	differs  map[string]string // tests that fail on serve alone, and why that is right
}

const connect = "the handler is a proxy that takes CONNECT: Lenient.Connect"

// The longest come first, so that none is left alone at the end.
var suites = []suite{
	{module: "github.com/go-chi/chi/v5@v5.5.0", packages: []string{"./..."}},
	{
		module:   "google.golang.org/grpc@v1.85.0",
		packages: []string{"./test"},
		args:     []string{"-only_env=handler-tls"}, // grpc.Server as an http.Handler
		run:      `^Test$/(Peer|Metadata|Unary|Stream|PingPong|Header|Trailer|Cancel|Compress|MsgSize|MsgLimit|ClientRequestBody|Quota|RPC|HealthWatch)`,
	},
	{module: "connectrpc.com/connect@v1.21.1", packages: []string{"."}},
	{module: "github.com/coder/websocket@v1.8.15", packages: []string{"."}},
	{module: "github.com/labstack/echo/v4@v4.16.0", packages: []string{"./..."}},
	{module: "github.com/labstack/echo/v5@v5.3.1", packages: []string{"./..."}},
	{
		module:   "github.com/gin-gonic/gin@v1.12.0",
		packages: []string{"."},
		skip:     "TestSaveUploadedCreateFailed", // as root it changes the mode of the root directory
		differs:  map[string]string{"TestH2c": "x/net's h2c handler wants the preface of HTTP/2 as a request: Lenient.Preface"},
	},
	{
		module:   "github.com/gorilla/websocket@v1.5.3",
		packages: []string{"."},
		differs:  map[string]string{"TestProxyDial": connect, "TestProxyAuthorizationDial": connect},
	},
	{module: "github.com/tmaxmax/go-sse@v0.12.0", packages: []string{"."}},
	{
		module:   "github.com/gorilla/handlers@v1.5.2",
		packages: []string{"."},
		skip:     "TestHeaderWrites", // it asks a server on the internet
	},
}

// Other people's tests pass as they do on net/http when every http.Server in them is a
// serve.Server. The servers of httptest are such, too.
func TestOthersSuites(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: runs other modules' tests")
	}
	t.Parallel()
	overlay := hookedOverlay(t)
	for _, s := range suites {
		t.Run(strings.ReplaceAll(s.module, "/", " "), func(t *testing.T) {
			t.Parallel() // many wait
			dir := copyModule(t, s.module)
			served := addHooks(t, dir)
			on := s.test(t, dir, overlay, nil)
			if _, err := os.Stat(served); err != nil {
				t.Fatalf("no server of the suite was served by serve: %v\n%s", err, on.said[""])
			}
			if on.passed == 0 {
				t.Fatalf("no test passed:\n%s", on.said[""])
			}
			t.Logf("%d tests passed, %d failed", on.passed, len(on.failed))
			s.judge(t, on, func(env ...string) outcome {
				return s.test(t, dir, overlay, slices.Sorted(maps.Keys(on.failed)), env...)
			})
		})
	}
}

// judge wants tests that failed to fail on net/http, too, or not to fail again: some
// depend on time.
func (s suite) judge(t *testing.T, on outcome, rerun func(env ...string) outcome) {
	t.Helper()
	for name := range s.differs {
		if !on.failed[name] {
			t.Errorf("%s no longer fails: it is listed as a difference", name)
		}
	}
	if len(on.failed) == 0 {
		return
	}
	plain := rerun("TARE_PLAIN=1")
	again := rerun()
	for name := range on.failed { // a name is that of a test or subtest
		switch {
		case plain.failed[name] && s.differs[name] == "":
			t.Logf("%s fails on net/http, too", name)
		case plain.failed[name]:
			t.Errorf("%s fails on net/http, too: it is listed as a difference", name)
		case s.differs[name] != "":
			t.Logf("%s fails on serve alone: %s", name, s.differs[name])
		case again.failed[name]:
			t.Errorf("%s passes on net/http and fails on serve, twice:\n%.4000s", name, on.said[name])
		default:
			t.Logf("%s failed once on serve and passed when it ran again", name)
		}
	}
}

// outcome is what go test -json reports of the tests of a module's packages.
type outcome struct {
	passed int               // tests and subtests
	failed map[string]bool   // the same, where no subtest has failed; "package X" if none has
	said   map[string]string // what a test printed; "": what go test printed
}

// suiteTime is what one run of a suite may take. A test that hangs ends by go test's own
// limit, with its goroutines.
const suiteTime = 2 * time.Minute

// test runs the suite's tests, or only some of them. It ends the tests and all that they
// started after suiteTime.
func (s suite) test(t *testing.T, dir, overlay string, only []string, env ...string) outcome {
	t.Helper()
	args := []string{"test", "-json", "-vet=off", "-count=1", "-timeout=60s", "-overlay=" + overlay}
	if s.skip != "" {
		args = append(args, "-skip="+s.skip)
	}
	switch {
	case s.run != "":
		args = append(args, "-run="+s.run)
	case len(only) > 0:
		args = append(args, "-run=^("+strings.Join(topLevel(only), "|")+")$")
	}
	ctx, cancel := context.WithTimeout(t.Context(), suiteTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", slices.Concat(args, s.packages, s.args)...)
	cmd.Dir, cmd.Env = dir, slices.Concat(os.Environ(), moduleEnv, env)
	endWithChildren(cmd)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	o := readOutcome(out)
	o.said[""] = stderr.String() + o.said[""]
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Fatalf("go %s: %v\n%.4000s", strings.Join(args, " "), cmp.Or(ctx.Err(), err), o.said[""])
	}
	return o
}

func readOutcome(out []byte) outcome {
	o := outcome{failed: map[string]bool{}, said: map[string]string{}}
	blamed := map[string]bool{} // tests and packages that fail since a test in them does
	for line := range bytes.Lines(out) {
		var e struct{ Action, Package, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		o.said[e.Test] += e.Output
		switch {
		case e.Action == "pass" && e.Test != "":
			o.passed++
		case e.Action != "fail":
		case e.Test == "" && !blamed[e.Package]: // its time was up, or it does not compile
			o.failed["package "+e.Package] = true
			o.said["package "+e.Package] = o.said[""]
		case e.Test != "":
			if !blamed[e.Package+" "+e.Test] {
				o.failed[e.Test] = true
			}
			blamed[e.Package] = true
			for at := strings.LastIndexByte(e.Test, '/'); at > 0; at = strings.LastIndexByte(e.Test[:at], '/') {
				blamed[e.Package+" "+e.Test[:at]] = true
			}
		}
	}
	return o
}

// topLevel returns the tests that tests and subtests belong to.
func topLevel(names []string) []string {
	var all []string
	for _, name := range names {
		name, _, _ = strings.Cut(name, "/")
		all = append(all, name)
	}
	return slices.Compact(all)
}

// hookedOverlay writes an overlay of the toolchain's net/http with hooks.
func hookedOverlay(t *testing.T) string {
	t.Helper()
	original := filepath.Join(strings.TrimSpace(runGo(t, ".", "env", "GOROOT")), "src", "net", "http", "server.go")
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	hooked, err := hookServer(source)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server, path := filepath.Join(dir, "server.go"), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: server}})
	if err := errors.Join(err, os.WriteFile(server, hooked, 0o600), os.WriteFile(path, overlay, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyModule downloads a module and returns a copy of it that can be written to.
func copyModule(t *testing.T, module string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	var at struct{ Dir, Error string }
	if json.Unmarshal(out, &at) != nil || at.Dir == "" {
		t.Skipf("SKIPPED: cannot download %s: %v %s", module, err, at.Error)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(at.Dir)); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o755))
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// addHooks adds to each package with tests a file that sets the hooks, and to the
// module the requirement of serve. It returns the path of a file that the hooks make
// once a server has served.
func addHooks(t *testing.T, dir string) string {
	t.Helper()
	served := filepath.Join(t.TempDir(), "served")
	root, err := filepath.Abs("../../serve")
	if err != nil {
		t.Fatal(err)
	}
	runGo(t, dir, "mod", "edit", "-require="+serveModule+"@v0.0.0", "-replace="+serveModule+"="+root)
	source := strings.NewReplacer(
		"import (", "import (\n\ttareOS \"os\"",
		"func init() {", "func init() {\n\tif tareOS.Getenv(\"TARE_PLAIN\") != \"\" {\n\t\treturn\n\t}",
		"return own.Serve", "_ = tareOS.WriteFile("+strconv.Quote(served)+", nil, 0o600)\n\t\t\treturn own.Serve", // and own.ServeTLS
	).Replace(serveSource)
	list := runGo(t, dir, "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}} {{.Name}}{{end}}", "./...")
	for line := range strings.Lines(list) {
		at, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		text := strings.Replace(source, "package main", "package "+name, 1)
		if err := os.WriteFile(filepath.Join(at, "tare_serve_test.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return served
}

// moduleEnv has the go command see a copied module alone, and complete its go.mod.
var moduleEnv = []string{"GOWORK=off", "GOFLAGS=-mod=mod"}

func runGo(t *testing.T, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), moduleEnv...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), cmp.Or(ctx.Err(), err), stderr.String())
	}
	return string(out)
}
