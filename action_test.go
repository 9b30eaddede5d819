package tare_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// actionlint is the version of the linter of workflows and actions.
const actionlint = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"

// action is what is read of action.yml.
type action struct {
	Inputs map[string]struct {
		Description string `yaml:"description"`
		Default     string `yaml:"default"`
	} `yaml:"inputs"`
	Runs struct {
		Using string           `yaml:"using"`
		Steps []map[string]any `yaml:"steps"`
	} `yaml:"runs"`
}

func readAction(t *testing.T) action {
	t.Helper()
	content, err := os.ReadFile("action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(content, &a); err != nil {
		t.Fatal(err)
	}
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Fatalf("action.yml runs %+v, want the steps of a composite action", a.Runs)
	}
	return a
}

// measureScript is the script of the action's last step.
func (a *action) measureScript() string {
	script, _ := a.Runs.Steps[len(a.Runs.Steps)-1]["run"].(string)
	return script
}

// writeFiles writes files below a folder.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// documented is the workflow that docs/pull-requests.md shows.
func documented(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("docs/pull-requests.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], "uses: tarehq/tare@") {
			return block[1]
		}
	}
	t.Fatal("docs/pull-requests.md shows no workflow that uses the action")
	return ""
}

// TestActionLint has actionlint look at the documented workflow with the action, and at the
// action's steps as those of a workflow that is called with its inputs.
func TestActionLint(t *testing.T) {
	a := readAction(t)
	inputs := map[string]any{}
	for name, in := range a.Inputs {
		if in.Description == "" {
			t.Errorf("action.yml: input %s has no description", name)
		}
		inputs[name] = map[string]any{"type": "string", "description": in.Description}
	}
	steps := slices.Insert(slices.Clone(a.Runs.Steps), 0, map[string]any{"uses": "actions/checkout@v5"})
	called, err := yaml.Marshal(map[string]any{
		"on":   map[string]any{"workflow_call": map[string]any{"inputs": inputs}},
		"jobs": map[string]any{"measure": map[string]any{"runs-on": "ubuntu-latest", "steps": steps}},
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("action.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	local := regexp.MustCompile(`uses: tarehq/tare@\S+`).ReplaceAllString(documented(t), "uses: ./")
	writeFiles(t, dir, map[string]string{"action.yml": string(content), ".github/workflows/documented.yml": local, ".github/workflows/called.yml": string(called)})
	run := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("git", "init", "-q", "."); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	if out, err := run("go", "run", actionlint, "-version"); err != nil {
		t.Skipf("SKIPPED: %s is not to be had here: %v: %s", actionlint, err, out)
	}
	if out, err := run("go", "run", actionlint, "-no-color"); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
}

// TestActionScript runs the action's last step with a tare that prints its arguments.
func TestActionScript(t *testing.T) {
	a := readAction(t)
	repo, temp := t.TempDir(), t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Dir = repo
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", ".")
	git("remote", "add", "origin", repo)
	for _, message := range []string{"one", "two"} {
		git("commit", "-q", "--allow-empty", "-m", message)
	}
	base := git("rev-parse", "--short=12", "HEAD^1")
	writeFiles(t, temp, map[string]string{"tare/tare": "#!/bin/sh\nprintf '%s\\n' \"$@\"\necho a comment >\"$RUNNER_TEMP/tare/comment.md\"\nexit ${STATUS:-0}\n"})
	comment := filepath.Join(temp, "tare", "comment.md")
	for _, tt := range []struct {
		name string
		env  map[string]string
		want []string // arguments, one a line
		fail int
	}{
		{"a service", map[string]string{"SERVICE": "./cmd/api", "ARGS": "--path '/a b' --budget 1m"},
			[]string{"ab", "--markdown", comment, "--max", "cpu_per_request<=5%", "--path", "/a b", "--budget", "1m", "--comment", "./cmd/api@" + base, "./cmd/api"}, 0},
		{"words that a shell would run", map[string]string{"SERVICE": "./a", "ARGS": "--path /$(id)`id`;x", "COMMENT": "false"},
			[]string{"ab", "--markdown", comment, "--max", "cpu_per_request<=5%", "--path", "/$(id)`id`;x", "./a@" + base, "./a"}, 0},
		{"a fork, two budgets, a base", map[string]string{"SERVICE": "./a", "FORK": "true", "MAX": "startup<=9%\n\nrss_peak<=8%\n", "BASE": "HEAD"},
			[]string{"ab", "--markdown", comment, "--max", "startup<=9%", "--max", "rss_peak<=8%", "./a@HEAD", "./a"}, 0},
		{"a study", map[string]string{"STUDY": "release.yaml", "MAX": ""}, []string{"gate", "--markdown", comment, "--comment", "release.yaml"}, 0},
		{"failed", map[string]string{"STUDY": "x.yaml", "STATUS": "3"}, nil, 3},
		{"inconclusive, which passes", map[string]string{"STUDY": "x.yaml", "STATUS": "4"}, nil, 0},
		{"inconclusive, which fails", map[string]string{"STUDY": "x.yaml", "STATUS": "4", "INCONCLUSIVE": "fail"}, nil, 4},
		{"nothing to measure", nil, nil, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := t.TempDir()
			vars := map[string]string{"RUNNER_TEMP": temp, "GITHUB_OUTPUT": filepath.Join(out, "output"), "GITHUB_STEP_SUMMARY": filepath.Join(out, "summary"), "FORK": "false"}
			for name, in := range a.Inputs {
				vars[strings.ToUpper(name)] = in.Default
			}
			vars["PROFILE"] = "false"
			maps.Copy(vars, tt.env)
			cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", a.measureScript()) // as the runner does
			cmd.Dir, cmd.Env = repo, os.Environ()
			for name, value := range vars {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			var said bytes.Buffer
			cmd.Stderr = &said
			got, err := cmd.Output()
			if status := cmd.ProcessState.ExitCode(); status != tt.fail {
				t.Fatalf("got status %d (%v), want %d: %s", status, err, tt.fail, said.String())
			}
			if tt.want != nil && strings.TrimSuffix(string(got), "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got arguments\n%swant\n%s", got, strings.Join(tt.want, "\n"))
			}
			summary, _ := os.ReadFile(vars["GITHUB_STEP_SUMMARY"])
			if tt.fail != 2 && string(summary) != "a comment\n" {
				t.Errorf("the job's summary is %q, want the comment", summary)
			}
		})
	}
}

// TestActionBuild wants tare built by a toolchain of its own: setup-go has GOTOOLCHAIN=local
// for the module that is measured, which may be content with an older Go.
func TestActionBuild(t *testing.T) {
	a := readAction(t)
	i := slices.IndexFunc(a.Runs.Steps, func(step map[string]any) bool { return step["name"] == "Build tare" })
	if i < 0 {
		t.Fatal("action.yml has no step that builds tare")
	}
	temp := t.TempDir()
	writeFiles(t, temp, map[string]string{"bin/go": "#!/bin/sh\necho $GOTOOLCHAIN $GOWORK $*\n"})
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", fmt.Sprint(a.Runs.Steps[i]["run"]))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(temp, "bin")+":"+os.Getenv("PATH"), "RUNNER_TEMP="+temp, "GITHUB_ACTION_PATH=/action", "GOTOOLCHAIN=local")
	out, err := cmd.CombinedOutput()
	if want := "auto off build -C /action -o " + temp + "/tare/tare ./cmd/tare\n"; err != nil || string(out) != want {
		t.Errorf("go is called by %q, %v, want %q", out, err, want)
	}
}

// TestGitLabTemplate wants a component: a document with inputs, and one with the job, whose
// inputs are all declared and whose script a shell can read.
func TestGitLabTemplate(t *testing.T) {
	content, err := os.ReadFile("templates/tare.yml")
	if err != nil {
		t.Fatal(err)
	}
	var head struct {
		Spec struct {
			Inputs map[string]map[string]string `yaml:"inputs"`
		} `yaml:"spec"`
	}
	var body map[string]struct {
		Stage  string              `yaml:"stage"`
		Script []string            `yaml:"script"`
		Rules  []map[string]string `yaml:"rules"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(content))
	if err := dec.Decode(&head); err != nil {
		t.Fatal(err)
	}
	if err := dec.Decode(&body); err != nil {
		t.Fatal(err)
	}
	job := body["tare"]
	if len(head.Spec.Inputs) == 0 || len(job.Script) == 0 || len(job.Rules) == 0 {
		t.Fatalf("got inputs %v and job %+v", head.Spec.Inputs, job)
	}
	input := regexp.MustCompile(`\$\[\[ inputs\.(\w+) \]\]`)
	used := map[string]bool{}
	for _, m := range input.FindAllStringSubmatch(string(content), -1) {
		used[m[1]] = true
		if head.Spec.Inputs[m[1]] == nil {
			t.Errorf("input %s is not declared", m[1])
		}
	}
	for name := range head.Spec.Inputs {
		if !used[name] {
			t.Errorf("input %s is declared and not used", name)
		}
	}
	for _, line := range job.Script {
		line = input.ReplaceAllString(line, "x")
		if out, err := exec.Command("sh", "-n", "-c", line).CombinedOutput(); err != nil {
			t.Errorf("script %q: %v: %s", line, err, out)
		}
	}
	if text := fmt.Sprint(job.Script); !strings.Contains(text, "CI_MERGE_REQUEST_DIFF_BASE_SHA") || !strings.Contains(text, "--comment") {
		t.Errorf("the script is %q, want it to compare with the merge request's base and to comment", text)
	}
}
