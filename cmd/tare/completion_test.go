package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		"tare man cl":              "claims",
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

// TestCompletionZshFile installs the script as packages do, and types in a shell that has
// never completed: zsh then calls the file as a function.
func TestCompletionZshFile(t *testing.T) {
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("zsh is not installed")
	}
	dir := t.TempDir()
	var script, errs bytes.Buffer
	if status := run(t.Context(), []string{"completion", "zsh"}, &cli.Terminal{Out: &script, Err: &errs, Width: 80}); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	if err := os.WriteFile(filepath.Join(dir, "_tare"), script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	// The inner shell completes at TAB and then prints the line as it stands.
	const typed = `zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner 'PS1=; fpath=($TARE_FPATH $fpath); autoload -U compinit; compinit -u -D; bindkey "^I" complete-word; show() { print -r -- "<<$BUFFER>>"; zle accept-line }; zle -N show; bindkey "^X" show; print ready'
zpty -r inner out '*ready*ready*'
zpty -w -n inner $'tare trace --no-s\t\x18'
zpty -r inner out '*<<*>>*'
print -r -- $out
`
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, zsh, "-f", "-c", typed)
	cmd.Env = append(os.Environ(), "ZDOTDIR="+dir, "TARE_FPATH="+dir, "TERM=dumb")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "<<tare trace --no-samples") {
		t.Errorf("got %q, %v, want --no-samples completed", out, err)
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
