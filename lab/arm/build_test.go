package arm_test

import (
	"archive/zip"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// tree writes files, given as path and content in turn, and returns their
// directory.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func prints(text string) string { return "package main\n\nfunc main() { println(\"" + text + "\") }\n" }

// output runs the program and returns what it wrote to standard error.
func output(t *testing.T, p *arm.Program) string {
	t.Helper()
	out, err := exec.Command(p.Path, p.Args...).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func build(t *testing.T, b *arm.Builder, a study.Arm) *arm.Program {
	t.Helper()
	p, err := b.Build(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBuildUsersPackage(t *testing.T) {
	dir := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n", "main.go", prints("one"), "cmd/deep/main.go", prints("deep"))
	cache := t.TempDir()
	a := study.Arm{Name: "mine", Go: dir, Args: []string{"-x"}, Env: []string{"A=b"}, Sink: "pipe"}
	one := build(t, &arm.Builder{Cache: cache}, a)
	if got := output(t, one); got != "one\n" {
		t.Errorf("got a program that prints %q, want one", got)
	}
	if filepath.Base(one.Path) != filepath.Base(dir) || !strings.HasPrefix(one.Go, "go1.") || len(one.BuildID) != 64 {
		t.Errorf("got %+v, want it named for its directory, with Go version and ID", one)
	}
	if !slices.Equal(one.Args, a.Args) || !slices.Equal(one.Env, a.Env) || one.Sink != a.Sink {
		t.Errorf("got %+v, want the arm's arguments, environment and sink", one)
	}
	before, err := os.Stat(one.Path)
	if err != nil {
		t.Fatal(err)
	}

	b := &arm.Builder{Cache: cache}
	again := build(t, b, a)
	if after, err := os.Stat(again.Path); err != nil || again.Path != one.Path || !os.SameFile(before, after) {
		t.Errorf("built again unchanged: got %s, %v, want the same file %s", again.Path, err, one.Path)
	}

	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(prints("two")), 0o644); err != nil {
		t.Fatal(err)
	}
	if within := build(t, b, a); within.BuildID != one.BuildID {
		t.Errorf("changed within a run: got another program, want the run's")
	}
	two := build(t, &arm.Builder{Cache: cache}, a)
	if two.BuildID == one.BuildID || output(t, two) != "two\n" || output(t, one) != "one\n" {
		t.Errorf("changed: got %+v beside %+v, want two programs", two, one)
	}

	t.Chdir(dir)
	for pkg, want := range map[string]string{"./cmd/deep": "deep\n", "example.com/mine/cmd/deep": "deep\n", ".": "one\n"} { // the last was built by this builder before
		if got := output(t, build(t, b, study.Arm{Go: pkg})); got != want {
			t.Errorf("%s: got a program that prints %q, want %q", pkg, got, want)
		}
	}
}

// An executable that was damaged in the cache, as by a crash of the machine, is built
// anew.
func TestBuildOverDamage(t *testing.T) {
	dir := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n", "main.go", prints("one"))
	cache, a := t.TempDir(), study.Arm{Name: "mine", Go: dir}
	p := build(t, &arm.Builder{Cache: cache}, a)
	info, err := os.Stat(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(p.Path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	again := build(t, &arm.Builder{Cache: cache}, a)
	if got := output(t, again); got != "one\n" || again.BuildID != p.BuildID {
		t.Errorf("got a program %.12s… that prints %q, want %.12s…, which prints one", again.BuildID, got, p.BuildID)
	}
}

// An interrupted build leaves no folder of the go command's, which is killed.
func TestBuildInterrupted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: builds have guards on Linux alone")
	}
	dir := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n", "main.go", prints("one"))
	cache, temporary := t.TempDir(), t.TempDir()
	t.Setenv("GOCACHE", t.TempDir()) // so that it takes a while
	t.Setenv("TMPDIR", temporary)
	works := func() (found []string) {
		for _, root := range []string{cache, temporary} {
			filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "go-build") {
					found = append(found, path)
				}
				return nil
			})
		}
		return found
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		b := arm.Builder{Cache: cache}
		_, err := b.Build(ctx, study.Arm{Name: "mine", Go: dir})
		done <- err
	}()
	for deadline := time.Now().Add(time.Minute); len(works()) == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if len(works()) == 0 {
		t.Error("the go command made no folder")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if left := works(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestBuildErrors(t *testing.T) {
	broken := "package main\n\nfunc main() {\n" + strings.Repeat("\tundefined()\n", 5) + "}\n"
	dir := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n", "broken/main.go", broken,
		"lib/lib.go", "package lib\n", "new/go.mod", "module example.com/new\n\ngo 1.99\n", "new/main.go", prints("new"))
	t.Chdir(dir)
	t.Setenv("GOTOOLCHAIN", "local")
	tests := []struct {
		arm  study.Arm
		want string
	}{
		{study.Arm{Go: "./broken"}, "main.go:4:2: undefined: undefined"},
		{study.Arm{Go: "./lib"}, "not a command: an arm is a package main"},
		{study.Arm{Go: "./nowhere"}, `package "./nowhere": no such directory`},
		{study.Arm{Go: "example.com/mine/nowhere"}, "go build example.com/mine/nowhere: exit status 1:\n"},
		{study.Arm{Go: "./new"}, "this Go is too old"},
		{study.Arm{Go: "./arms/nethttp"}, "finding tare's source: no go.mod of github.com/tarehq/tare in"},
		{study.Arm{Rival: "gin"}, "finding tare's source"},
		{study.Arm{URL: "localhost:80"}, `"localhost:80" is not an absolute URL`},
	}
	for _, tt := range tests {
		_, err := (&arm.Builder{Cache: t.TempDir()}).Build(t.Context(), tt.arm)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want an error that says %q", tt.arm, err, tt.want)
		}
	}
}

// A folder that is not tare's own source is named, and what to do.
func TestBuildElsewhere(t *testing.T) {
	other := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n")
	for _, a := range []study.Arm{{Go: "./arms/nesting"}, {Rival: "gin"}} {
		_, err := (&arm.Builder{ModuleDir: other, Cache: t.TempDir()}).Build(t.Context(), a)
		if err == nil || !strings.Contains(err.Error(), "no go.mod of github.com/tarehq/tare in "+other) || !strings.Contains(err.Error(), "--module") {
			t.Errorf("%+v: got %v, want an error that names %s and --module", a, err, other)
		}
	}
}

func TestBuildWithoutGo(t *testing.T) {
	dir := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n", "main.go", prints("one"))
	t.Setenv("PATH", t.TempDir())
	_, err := (&arm.Builder{Cache: t.TempDir()}).Build(t.Context(), study.Arm{Go: dir})
	if !errors.Is(err, arm.ErrNotInstalled) || !strings.Contains(err.Error(), "https://go.dev/dl") {
		t.Errorf("got %v, want ErrNotInstalled with where to get it", err)
	}
}

// Without a place for executables it is not the arm that is at fault.
func TestBuildWithoutCache(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&arm.Builder{Cache: filepath.Join(file, "below")}).Build(t.Context(), study.Arm{Go: dir})
	if !errors.Is(err, arm.ErrNoCache) || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: got %v, want ErrNoCache with the path", err)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	if _, err := os.UserCacheDir(); err == nil {
		return // this system has one all the same
	}
	if _, err := new(arm.Builder).Build(t.Context(), study.Arm{Go: dir}); !errors.Is(err, arm.ErrNoCache) {
		t.Errorf("without a user's cache: got %v, want ErrNoCache", err)
	}
}

func TestBuildCommand(t *testing.T) {
	bin := tree(t, "server", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(bin, "server"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	wd := t.TempDir()
	t.Chdir(wd)
	p := build(t, &arm.Builder{}, study.Arm{Command: []string{"server", "-l", "${TARE_ADDR}"}, Needs: []string{"server"}})
	want := arm.Program{Path: filepath.Join(bin, "server"), Dir: wd, BuildID: "a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf"}
	if p.Path != want.Path || p.Dir != want.Dir || p.BuildID != want.BuildID || p.Go != "" || !slices.Equal(p.Args, []string{"-l", "${TARE_ADDR}"}) {
		t.Errorf("got %+v, want %+v with the command's arguments", p, want)
	}
	for _, a := range []study.Arm{
		{Command: []string{"no-such-server"}},
		{Command: []string{"./no-such-server"}},
		{Command: []string{"server"}, Needs: []string{"no-such-server"}},
	} {
		_, err := (&arm.Builder{}).Build(t.Context(), a)
		if !errors.Is(err, arm.ErrNotInstalled) || !strings.Contains(err.Error(), "no-such-server") {
			t.Errorf("%+v: got %v, want ErrNotInstalled and the name", a, err)
		}
	}
}

// A need with arguments is a command that must succeed.
func TestNeeds(t *testing.T) {
	for need, want := range map[string]string{
		"true":              "",
		"true with words":   "",
		"false":             "", // it is installed
		"false with words":  `"false with words", which must succeed: exit status 1`,
		"ls /no/such/place": "/no/such/place",
		"no-such-program x": "not installed",
		" ":                 "not installed",
	} {
		_, err := (&arm.Builder{}).Build(t.Context(), study.Arm{Command: []string{"true"}, Needs: []string{need}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", need, err, want)
		}
	}
}

// framework is a module of which [serveModules] has two versions. plugin requires the newer.
const (
	framework = "example.com/framework"
	plugin    = "example.com/plugin"
)

// serveModules sets GOPROXY to a folder with modules.
func serveModules(t *testing.T) {
	t.Helper()
	proxy := t.TempDir()
	for _, v := range []string{"v1.8.2", "v1.9.0"} {
		serveModule(t, proxy, framework, v, map[string]string{
			"go.mod": "module " + framework + "\n\ngo 1.20\n",
			"f.go":   "package framework\n\nconst Version = \"" + v + "\"\n", "tool/v2/main.go": prints("tool " + v),
		})
	}
	serveModule(t, proxy, plugin, "v1.0.0", map[string]string{
		"go.mod": "module " + plugin + "\n\ngo 1.20\n\nrequire " + framework + " v1.9.0\n",
		"p.go":   "package plugin\n\nimport \"" + framework + "\"\n\nconst Version = framework.Version\n",
	})
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOMODCACHE", filepath.Join(t.TempDir(), "mod"))
}

// serveModule puts a version of a module into a folder that GOPROXY can name.
func serveModule(t *testing.T, proxy, module, version string, files map[string]string) {
	t.Helper()
	at := filepath.Join(proxy, module, "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, text := range files {
		w, err := z.Create(module + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(text))
	}
	list, err := os.ReadFile(filepath.Join(at, "list"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	err = errors.Join(z.Close(), f.Close(),
		os.WriteFile(filepath.Join(at, "list"), []byte(string(list)+version+"\n"), 0o644),
		os.WriteFile(filepath.Join(at, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o644),
		os.WriteFile(filepath.Join(at, version+".mod"), []byte(files["go.mod"]), 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

// runGo runs the go command in a folder, alone.
func runGo(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-modcacherw", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// checkout is a tree like tare's own with one rival, whose framework has two
// versions.
func checkout(t *testing.T) string {
	t.Helper()
	serveModules(t)
	t.Setenv("GOFLAGS", "-modcacherw -mod=vendor") // vendor: what a user may have set must not matter
	root := tree(t,
		"go.mod", "module github.com/tarehq/tare\n\ngo 1.26\n",
		"arms/go.mod", "module github.com/tarehq/tare/arms\n\ngo 1.26\n",
		"arms/plain/main.go", prints("plain"),
		"arms/routes/routes.go", "package routes\n\nconst Name = \"routes\"\n",
		"arms/rivals/go.mod", "module github.com/tarehq/tare/arms/rivals\n\ngo 1.26\n\nrequire "+framework+" v1.9.0\n\n"+
			"require github.com/tarehq/tare/arms v0.0.0\n\nreplace github.com/tarehq/tare/arms => ..\n",
		"arms/rivals/internal/text/text.go", "package text\n\nconst Colon = \": \"\n",
		"arms/rivals/some/main.go", "//tare:module "+framework+"\n\n// Command some is a rival.\npackage main\n\n"+
			"import (\n\t\"github.com/tarehq/tare/arms/rivals/internal/text\"\n\t\"github.com/tarehq/tare/arms/routes\"\n\t\""+framework+"\"\n)\n\n"+
			"func main() { println(routes.Name + text.Colon + framework.Version) }\n",
		"arms/rivals/unmarked/main.go", prints("unmarked"))
	runGo(t, filepath.Join(root, "arms", "rivals"), "mod", "download", "all")
	return root
}

func TestBuildRivals(t *testing.T) {
	root := checkout(t)
	b := &arm.Builder{ModuleDir: root, Cache: t.TempDir()}
	if got := output(t, build(t, b, study.Arm{Go: "./arms/plain"})); got != "plain\n" {
		t.Errorf("./arms/plain: got a program that prints %q", got)
	}
	for rival, version := range map[string]string{"some": "v1.9.0", "some@v1.8.2": "v1.8.2", "some@v1.9.0": "v1.9.0"} {
		for _, b := range []*arm.Builder{b, {ModuleDir: root, Cache: b.Cache}} {
			p := build(t, b, study.Arm{Rival: rival})
			if got := output(t, p); got != "routes: "+version+"\n" || p.Modules["example.com/framework"] != version || filepath.Base(p.Path) != "some" {
				t.Errorf("%s: got %+v, which prints %q, want version %s", rival, p, got, version)
			}
		}
	}
	tool := build(t, b, study.Arm{Go: "example.com/framework/tool/v2@v1.8.2"})
	if got := output(t, tool); got != "tool v1.8.2\n" || filepath.Base(tool.Path) != "tool" {
		t.Errorf("a package at a version: got %+v, which prints %q, want tool v1.8.2", tool, got)
	}
	if _, err := b.Build(t.Context(), study.Arm{Go: "example.com/framework/tool/v2@v7.0.0"}); err == nil || !strings.Contains(err.Error(), "v7.0.0") {
		t.Errorf("a package at a version that is not served: got %v, want an error that names it", err)
	}
	for rival, want := range map[string]string{
		"other":           `no rival is named "other": there are some, unmarked`,
		"some@v7.0.0":     "v7.0.0",
		"some@latest":     `"latest" is not a version`,
		"some@v1\n":       "is not a version",
		"unmarked@v1.2.3": `no line "//tare:module "… says which module a version is of`,
		"../rivals/some":  "no rival is named",
	} {
		if _, err := b.Build(t.Context(), study.Arm{Rival: rival}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error that says %q", rival, err, want)
		}
	}
}

func TestFindModule(t *testing.T) {
	root := tree(t, "go.mod", "// comment\nmodule \"github.com/tarehq/tare\"\n",
		"arms/rivals/go.mod", "module github.com/tarehq/tare/arms/rivals\n", "arms/rivals/gin/main.go", "")
	for _, dir := range []string{".", "arms", "arms/rivals/gin"} {
		if got, err := arm.FindModule(filepath.Join(root, dir)); err != nil || got != root {
			t.Errorf("from %s: got %q, %v, want %q", dir, got, err, root)
		}
	}
	if got, err := arm.FindModule(t.TempDir()); err == nil || !strings.Contains(err.Error(), "clone https://github.com/tarehq/tare") {
		t.Errorf("from elsewhere: got %q, %v, want an error with the remedy", got, err)
	}
}
