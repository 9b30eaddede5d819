package variant_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/variant"
)

func TestParse(t *testing.T) {
	for _, word := range []string{"pgo", "serve", "go1.25.4", "go1.26rc1", "gin@v1.9.1", "github.com/go-chi/chi/v5@v5.2.0", "x@latest"} {
		v, err := variant.Parse(word)
		if err != nil || v.String() != word {
			t.Errorf("Parse(%q) = %q, %v", word, v, err)
		}
	}
	for _, word := range []string{"", "PGO", "go1", "gin", "gin@", "@v1", "go1.25.4 x", "-x@v1", "a b@v1", "gin@1.9.1"} {
		if v, err := variant.Parse(word); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", word, v)
		}
	}
}

func TestParseAll(t *testing.T) {
	if _, err := variant.ParseAll([]string{"pgo", "gin@v1.9.1", "echo@v4.1.0", "go1.25.4"}); err != nil {
		t.Error(err)
	}
	for _, words := range [][]string{{"pgo", "pgo"}, {"gin@v1.9.1", "gin@v1.8.1"}, {"go1.25.4", "go1.24.1"}} {
		if _, err := variant.ParseAll(words); err == nil || !strings.Contains(err.Error(), "leave one out") {
			t.Errorf("ParseAll(%q): error %v", words, err)
		}
	}
}

// program writes a module with a service that says by whom it is served.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module example.com/api\n\ngo 1.26\n",
		"main.go": `package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
)

var server = &http.Server{Addr: os.Getenv("ADDR")}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		server.SetKeepAlivesEnabled(false)
		stack := make([]byte, 1<<16)
		stack = stack[:runtime.Stack(stack, false)]
		fmt.Fprint(w, runtime.Version(), " serve=", strings.Contains(string(stack), "tare/serve"))
	})
	if err := serve(); err != nil {
		panic(err)
	}
}

func serve() error { return server.ListenAndServe() }
`,
	})
	return dir
}

// write writes files into a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// build builds a variant of the program and returns the executable.
func build(t *testing.T, o variant.Options, words ...string) string {
	t.Helper()
	variants, err := variant.ParseAll(words)
	if err != nil {
		t.Fatal(err)
	}
	b, err := variant.Apply(t.Context(), variants, o)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", out}, b.Flags...), ".")...) // as arms are built: packages are compiled once
	cmd.Dir, cmd.Env = o.Dir, append(os.Environ(), b.Env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build with %v: %v\n%s", words, err, said)
	}
	return out
}

// answer starts the program and returns its first answer. It is stopped at the test's end.
func answer(t *testing.T, path string, env ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(path)
	cmd.Env = append(append(os.Environ(), "ADDR="+addr), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 200 {
		res, err := http.Get("http://" + addr)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		defer res.Body.Close()
		text := make([]byte, 256)
		n, _ := res.Body.Read(text)
		return string(text[:n])
	}
	t.Fatal("the program never answered")
	return ""
}

func TestServe(t *testing.T) {
	dir := program(t)
	before := answer(t, build(t, variant.Options{Dir: dir, Work: t.TempDir()}))
	if !strings.Contains(before, "serve=false") {
		t.Fatalf("as it is, the program answers %q", before)
	}
	after := answer(t, build(t, variant.Options{Dir: dir, Work: t.TempDir(), ServeModule: "../../serve"}, "serve"))
	if !strings.Contains(after, "serve=true") {
		t.Errorf("with serve, the program answers %q", after)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("the program's folder has %v after the build, want go.mod and main.go alone", files)
	}
}

func TestServeWithoutServer(t *testing.T) {
	dir := program(t)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	variants, _ := variant.ParseAll([]string{"serve"})
	_, err := variant.Apply(t.Context(), variants, variant.Options{Dir: dir, Work: t.TempDir(), ServeModule: "../../serve"})
	if err == nil || !strings.Contains(err.Error(), "no http.Server") {
		t.Errorf("error %v, want it to say that there is no server", err)
	}
}

// A program that profiles itself can take no other profile, and says so. The file that is
// added to it clashes with no name of its own.
func TestAwaitProfileInVain(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "cpu.pgo")
	write(t, dir, map[string]string{
		"go.mod": "module example.com/api\n\ngo 1.26\n",
		"main.go": `package main

import (
	"io"
	profiles "runtime/pprof"
	clock "time"
)

var os, strconv = 1, 2

func pprof() {}

func time() {}

func main() {
	profiles.StartCPUProfile(io.Discard)
	println("profiling")
	clock.Sleep(clock.Minute)
}
`,
	})
	cmd := exec.Command(build(t, variant.Options{Dir: dir, Work: t.TempDir()}, "pgo"))
	cmd.Env = append(os.Environ(), variant.ProfileVariable+"="+path)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "profiling\n" {
		t.Fatalf("the program said %q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := variant.AwaitProfile(ctx, path); err == nil || !strings.Contains(err.Error(), "profiling already in use") {
		t.Errorf("got %v, want why the program takes no profile", err)
	}
	over, end := context.WithCancelCause(t.Context())
	end(errors.New("the load has ended"))
	if err := variant.AwaitProfile(over, filepath.Join(t.TempDir(), "cpu.pgo")); err == nil || err.Error() != "the load has ended" {
		t.Errorf("after the context's end got %v, want its cause", err)
	}
}

func TestRequirement(t *testing.T) {
	dir := program(t)
	variants, _ := variant.ParseAll([]string{"chi@v5.2.0"})
	_, err := variant.Apply(t.Context(), variants, variant.Options{Dir: dir, Work: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), `requires no module "chi"`) {
		t.Errorf("error %v, want it to say that chi is not required", err)
	}
}

func TestCheckout(t *testing.T) {
	dir := program(t)
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, said)
		}
	}
	run("init")
	run("add", ".")
	run("commit", "-m", "one")
	run("tag", "before")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	hooks, hooked := filepath.Join(dir, ".git", "hooks"), filepath.Join(t.TempDir(), "hooked")
	if err := errors.Join(os.MkdirAll(hooks, 0o755), os.WriteFile(filepath.Join(hooks, "post-checkout"), []byte("#!/bin/sh\ntouch '"+hooked+"'\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	c, err := variant.NewCheckout(context.Background(), dir, "before", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(hooked); err == nil {
		t.Error("a hook of the repository was run")
	}
	old, err := os.ReadFile(filepath.Join(c.Dir, "main.go"))
	if err != nil || !strings.Contains(string(old), "ListenAndServe") {
		t.Errorf("main.go at the tag is %q, %v", old, err)
	}
	worktree, err := exec.Command("git", "-C", c.Dir, "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal(err)
	}
	run("worktree", "lock", strings.TrimSpace(string(worktree))) // as Git does while it adds one
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".git", "worktrees", "*")); len(left) > 0 {
		t.Errorf("Git still knows of worktrees: %v", left)
	}
	if _, err := variant.NewCheckout(context.Background(), dir, "nowhere", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no such branch") {
		t.Errorf("an unknown ref gives %v", err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := variant.NewCheckout(ended, dir, "before", t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted checkout gives %v", err)
	}
}

// Within a hook of another repository, Git's variables name that one.
func TestCheckoutInHook(t *testing.T) {
	dir := program(t)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "one"}} {
		if said, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, said)
		}
	}
	elsewhere := t.TempDir()
	if said, err := exec.Command("git", "init", "-q", elsewhere).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	index := filepath.Join(elsewhere, "index.lock")
	t.Setenv("GIT_DIR", filepath.Join(elsewhere, ".git"))
	t.Setenv("GIT_INDEX_FILE", index)
	c, err := variant.NewCheckout(t.Context(), dir, "HEAD", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "main.go")); err != nil {
		t.Error(err)
	}
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(index); err == nil {
		t.Error("the index of the hook was written")
	}
}

// A Git submodule is built as the commit has it, whatever it is at on disk. One that lacks that
// commit is named.
func TestCheckoutSubmodule(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	commit := func(in, text string) {
		t.Helper()
		write(t, in, map[string]string{"text.go": text})
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "one"}} {
			if said, err := exec.Command("git", append([]string{"-C", in}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, said)
			}
		}
	}
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"go.mod": "module example.com/api\n\ngo 1.26\n\nrequire example.com/sub v0.0.0\n\nreplace example.com/sub => ./sub\n"})
	write(t, sub, map[string]string{"go.mod": "module example.com/sub\n\ngo 1.26\n"})
	commit(sub, "package sub // one\n")
	commit(dir, "package main\n")
	commit(sub, "package sub // two\n")
	c, err := variant.NewCheckout(t.Context(), dir, "HEAD", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(c.Dir, "sub", "text.go")); err != nil || string(got) != "package sub // one\n" {
		t.Errorf("the submodule has %q, %v, want what the commit names", got, err)
	}
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(sub, "text.go")); err != nil || string(got) != "package sub // two\n" {
		t.Errorf("on disk the submodule has %q, %v by now, want it as it was", got, err)
	}
	if err := os.RemoveAll(filepath.Join(sub, ".git")); err != nil {
		t.Fatal(err)
	}
	commit(sub, "package sub // three\n") // without the others
	if c, err := variant.NewCheckout(t.Context(), dir, "HEAD", t.TempDir()); err == nil || !strings.Contains(err.Error(), "submodule sub: git checkout: ") {
		t.Errorf("got %+v, %v, want an error that names the submodule", c, err)
	}
}

// A clone for CI mostly has one commit. The error on another says how to get it.
func TestCheckoutOfShallowClone(t *testing.T) {
	from, dir := program(t), filepath.Join(t.TempDir(), "clone")
	commit := []string{"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--allow-empty", "-qm", "one"}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, commit, commit, {"clone", "-q", "--depth", "1", "file://" + from, dir}} {
		if said, err := exec.Command("git", append([]string{"-C", from}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, said)
		}
	}
	if _, err := variant.NewCheckout(t.Context(), dir, "HEAD~1", t.TempDir()); err == nil || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("got %v, want the command that gets the commit", err)
	}
}
