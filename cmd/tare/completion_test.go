package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// TestCompletionBash has bash itself complete: verbs, flags in both their forms, and
// what an argument can be.
func TestCompletionBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	var script, errs bytes.Buffer
	if status := run(t.Context(), []string{"completion", "bash"}, &cli.Terminal{Out: &script, Err: &errs, Width: 80}); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	script.WriteString("tare() { [ \"$*\" = 'list --runs' ] && echo some-run; }\nCOMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _tare; echo \"${COMPREPLY[*]}\"\n")
	for line, want := range map[string]string{
		"tare com":                 "compare completion",
		"tare load --no":           "--no-tls-resume",
		"tare trace --no":          "--no-samples",
		"tare completion ":         "bash zsh fish --help",
		"tare help st":             "start strictness study-files",
		"tare completion z":        "zsh",
		"tare gate --ma":           "--markdown --max",
		"tare load --verify-s":     "--verify-sha256 --verify-status",
		"tare report --html a --j": "--json",
		"tare load --targets ":     "", // a file
		"tare load -n ":            "",
		"tare run --resume ":       "some-run",
		"tare cost --study s":      "some-run",
		"tare load --engine =":     "auto epoll goroutine", // bash parts words at =
		"tare load --engine = e":   "epoll",
		"tare run --module = n":    "", // a folder, no study
	} {
		cmd := exec.CommandContext(t.Context(), bash, append([]string{"-c", script.String(), "bash"}, strings.Split(line, " ")...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", line, got, err, want)
		}
	}
}

// TestCompletionZsh has zsh take the script as it is without any settings: what
// completes has to be loaded first.
func TestCompletionZsh(t *testing.T) {
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("zsh is not installed")
	}
	var script, errs bytes.Buffer
	if status := run(t.Context(), []string{"completion", "zsh"}, &cli.Terminal{Out: &script, Err: &errs, Width: 80}); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	script.WriteString("echo $_comps[tare]\n")
	cmd := exec.CommandContext(t.Context(), zsh, "-f", "-c", script.String())
	cmd.Env = append(os.Environ(), "ZDOTDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "_tare") {
		t.Errorf("got %q, %v, want _tare to complete tare", out, err)
	}
}

// TestCompletionFish offers the same words to fish.
func TestCompletionFish(t *testing.T) {
	var script, errs bytes.Buffer
	if status := run(t.Context(), []string{"completion", "fish"}, &cli.Terminal{Out: &script, Err: &errs, Width: 80}); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	if strings.Contains(script.String(), "-a \n") {
		t.Errorf("an empty word is offered:\n%s", &script)
	}
	for _, want := range []string{"from load' -l no-tls-resume\n", "from load' -l targets -r\n", "from run' -l resume -x -a '(tare list --runs 2>/dev/null)'\n", "from trace' -l no-samples\n", "from completion' -a zsh\n"} {
		if !strings.Contains(script.String(), want) {
			t.Errorf("no %q in the script", want)
		}
	}
}
