package arm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// imports is a program that prints a version, and the text of another package if that is named.
func imports(of string, others ...string) string {
	paths, text := "\t\""+of+"\"\n", ""
	for _, other := range others {
		paths += "\t\"" + other + "\"\n"
		text += filepath.Base(other) + ".Text + "
	}
	return "package main\n\nimport (\n" + paths + ")\n\nfunc main() { println(" + text + filepath.Base(of) + ".Version) }\n"
}

// Another version of a requirement is the one that is built with, however the program comes
// by its own, and nothing else of its module changes.
func TestBuildWithRequirement(t *testing.T) {
	serveModules(t)
	t.Setenv("GOWORK", "")
	const (
		app     = "module example.com/app\n\ngo 1.26\n\n"
		beside  = "example.com/beside"
		require = "require " + framework + " v1.9.0\n"
	)
	sum := sums(t)
	for _, tt := range []struct {
		name, as, with string
		files          []string
	}{
		{"direct", "v1.9.0", "v1.8.2", []string{"go.mod", app + require, "main.go", imports(framework)}},
		{"of a requirement, which wants more", "v1.9.0", "v1.8.2", []string{"go.mod", app + "require " + plugin + " v1.0.0\n\n" + require, "main.go", imports(plugin)}},
		{"replaced", "fork", "v1.8.2", []string{
			"go.mod", app + require + "\nreplace " + framework + " => ./fork\n", "main.go", imports(framework),
			"fork/go.mod", "module " + framework + "\n", "fork/f.go", "package framework\n\nconst Version = \"fork\"\n"}},
		{"vendored", "vendored", "v1.8.2", []string{
			"go.mod", app + require, "main.go", imports(framework),
			"vendor/modules.txt", "# " + framework + " v1.9.0\n## explicit; go 1.20\n" + framework + "\n",
			"vendor/" + framework + "/f.go", "package framework\n\nconst Version = \"vendored\"\n"}},
		{"in a workspace", "beside v1.9.0", "beside v1.8.2", []string{
			"go.work", "go 1.26\n\nuse (\n\t.\n\t./beside\n)\n", "go.mod", app + require, "main.go", imports(framework, beside),
			"beside/go.mod", "module " + beside + "\n\ngo 1.26\n", "beside/b.go", "package beside\n\nconst Text = \"beside \"\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, cache := tree(t, append(tt.files, "go.sum", sum)...), t.TempDir()
			if got := output(t, build(t, &arm.Builder{Cache: cache}, study.Arm{Go: dir})); got != tt.as+"\n" {
				t.Errorf("as it is, it prints %q, want %s", got, tt.as)
			}
			with := study.Arm{Go: dir, With: []string{"framework@v1.8.2"}}
			p := build(t, &arm.Builder{Cache: cache}, with)
			if got := output(t, p); got != tt.with+"\n" || p.Modules[framework] != "v1.8.2" {
				t.Errorf("with v1.8.2 it prints %q, want %s; its modules are %v", got, tt.with, p.Modules)
			}
			if again := build(t, &arm.Builder{Cache: cache}, with); again.Path != p.Path {
				t.Errorf("built again, it is kept as %s beside %s", again.Path, p.Path)
			}
			if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil || string(mod) != tt.files[2*indexOf(tt.files, "go.mod")+1] {
				t.Errorf("its own go.mod is %q, %v", mod, err)
			}
		})
	}
	dir := tree(t, "go.mod", app+require, "main.go", imports(framework), "go.sum", sum)
	for word, want := range map[string]string{
		"framework@v1.7.0": "v1.7.0",
		"other@v1.0.0":     `the program requires no module "other"`,
	} {
		if _, err := (&arm.Builder{Cache: t.TempDir()}).Build(t.Context(), study.Arm{Go: dir, With: []string{word}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", word, err, want)
		}
	}
}

// sums is a go.sum for the framework and the plugin.
func sums(t *testing.T) string {
	t.Helper()
	both := tree(t, "go.mod", "module example.com/app\n\ngo 1.26\n\nrequire (\n\t"+framework+" v1.9.0\n\t"+plugin+" v1.0.0\n)\n",
		"main.go", "package main\n\nimport (\n\t_ \""+framework+"\"\n\t_ \""+plugin+"\"\n)\n\nfunc main() {}\n")
	runGo(t, both, "mod", "tidy")
	content, err := os.ReadFile(filepath.Join(both, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// runGit runs Git in a folder.
func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// A commit is built in the workspace, and with the modules beside the repository, of the
// folder that it is compared with, whether Git holds them or not.
func TestBuildAtCommit(t *testing.T) {
	serveModules(t)
	const (
		app   = "module example.com/app\n\ngo 1.26\n\nrequire " + framework + " v1.9.0\n"
		inner = "package inner\n\nconst Text = \"%s \"\n"
		uses  = "go 1.26\n\nuse (\n\t%[1]s/app\n\t%[1]s/inner\n\t%[1]s/newer\n\t%[2]s/outer\n)\n"
	)
	sum := sums(t)
	for _, tt := range []struct{ name, mod, workspace, repo, beside string }{
		{"go.work that Git does not hold", app, "repo/go.work", ".", ".."},
		{"go.work above the repository", app, "go.work", "./repo", "."},
		{"GOWORK", app, "elsewhere/my.work", "../repo", ".."},
		{"GOWORK with whole paths", app, "elsewhere/my.work", "", ""},
		{"replacements", app + "\nrequire (\n\texample.com/inner v0.0.0\n\texample.com/outer v0.0.0\n)\n\nreplace (\n\texample.com/inner => ../inner\n\texample.com/outer => ../../outer\n)\n", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t,
				"repo/app/go.mod", tt.mod, "repo/app/go.sum", sum, "repo/app/main.go", imports(framework, "example.com/inner", "example.com/outer"),
				"repo/inner/go.mod", "module example.com/inner\n\ngo 1.26\n", "repo/inner/i.go", fmt.Sprintf(inner, "old"),
				"outer/go.mod", "module example.com/outer\n\ngo 1.26\n", "outer/o.go", "package outer\n\nconst Text = \"outer \"\n")
			repo := filepath.Join(dir, "repo")
			runGit(t, repo, "init", "-q")
			runGit(t, repo, "add", ".")
			runGit(t, repo, "commit", "-qm", "one")
			t.Setenv("GOWORK", "")
			if tt.workspace != "" {
				file := filepath.Join(dir, tt.workspace)
				at, beside := tt.repo, tt.beside
				if at == "" {
					at, beside = repo, dir
				}
				writeFile(t, file, fmt.Sprintf(uses, at, beside))
				writeFile(t, filepath.Join(repo, "newer/go.mod"), "module example.com/newer\n\ngo 1.26\n")
				if filepath.Base(file) != "go.work" {
					t.Setenv("GOWORK", file)
				}
			}
			b := &arm.Builder{Cache: t.TempDir()}
			now, old := study.Arm{Go: filepath.Join(repo, "app")}, study.Arm{Go: filepath.Join(repo, "app"), Ref: "HEAD"}
			p := build(t, b, old)
			if same := build(t, b, now); p.BuildID != same.BuildID {
				t.Errorf("equal sources give the programs %.12s and %.12s", p.BuildID, same.BuildID)
			}
			if got := output(t, p); got != "old outer v1.9.0\n" {
				t.Errorf("the commit prints %q, want its own text", got)
			}
			writeFile(t, filepath.Join(repo, "inner/i.go"), fmt.Sprintf(inner, "new"))
			b = &arm.Builder{Cache: t.TempDir()}
			if got := output(t, build(t, b, now)); got != "new outer v1.9.0\n" {
				t.Errorf("the folder prints %q, want the text that it has now", got)
			}
			old.With = []string{"framework@v1.8.2"}
			if got := output(t, build(t, b, old)); got != "old outer v1.8.2\n" {
				t.Errorf("with another framework the commit prints %q, want its own text", got)
			}
			if _, err := os.Stat(filepath.Join(dir, "outer", "o.go")); err != nil {
				t.Error(err) // the worktree had a link to it
			}
		})
	}
}

// writeFile writes a file and the folders above it.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// indexOf is the place of a file among pairs of path and content.
func indexOf(files []string, path string) int {
	for i := 0; i < len(files); i += 2 {
		if files[i] == path {
			return i / 2
		}
	}
	return -1
}

// Another version of Go is fetched as modules are.
func TestBuildWithToolchain(t *testing.T) {
	const version = "go1.22.12"
	cmd := exec.Command("go", "version")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+version)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %s is not to be had here: %v: %.200s", version, err, out)
	}
	b := &arm.Builder{Cache: t.TempDir()}
	dir := tree(t, "go.mod", "module example.com/mine\n\ngo 1.22\n", "main.go", prints("one"))
	p := build(t, b, study.Arm{Go: dir, With: []string{version}})
	if got := output(t, p); got != "one\n" || p.Go != version {
		t.Errorf("got a program of %s that prints %q, want %s", p.Go, got, version)
	}
	recent := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n", "main.go", prints("one"))
	if _, err := b.Build(t.Context(), study.Arm{Go: recent, With: []string{version}}); err == nil || !strings.Contains(err.Error(), "needs a later Go") {
		t.Errorf("a program that wants more: got %v, want an error that says so", err)
	}
	t.Setenv("GOPROXY", "off")
	if _, err := b.Build(t.Context(), study.Arm{Go: dir, With: []string{"go1.22.99"}}); err == nil || !strings.Contains(err.Error(), "go1.22.99") {
		t.Errorf("a version that is not to be had: got %v, want an error that names it", err)
	}
}

// serve comes from tare's source, also for a program whose module is in a workspace.
func TestBuildWithServe(t *testing.T) {
	t.Setenv("GOWORK", "")
	dir := tree(t,
		"go.work", "go 1.26\n\nuse (\n\t./app\n\t./beside\n)\n",
		"beside/go.mod", "module example.com/beside\n\ngo 1.26\n", "beside/b.go", "package beside\n\nconst Text = \"beside\"\n",
		"app/go.mod", "module example.com/app\n\ngo 1.26\n",
		"app/main.go", "package main\n\nimport (\n\t\"net/http\"\n\t\"os\"\n\n\t\"example.com/beside\"\n)\n\n"+
			"func main() {\n\tif len(os.Args) > 1 {\n\t\tpanic(http.ListenAndServe(os.Args[1], nil))\n\t}\n\tprintln(beside.Text)\n}\n")
	p := build(t, &arm.Builder{ModuleDir: "../..", Cache: t.TempDir()}, study.Arm{Go: filepath.Join(dir, "app"), With: []string{"serve"}})
	if _, ok := p.Modules["github.com/tarehq/tare/serve"]; !ok || output(t, p) != "beside\n" {
		t.Errorf("got a program with the modules %v, want serve among them", p.Modules)
	}
}
