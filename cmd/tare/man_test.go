package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// TestManPages writes the pages of all verbs. Each names its verb's flags, and mandoc finds
// no mistake, where it is installed.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"man", "-o", dir}, &cli.Terminal{Out: &out, Err: &errs, Width: 80}); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	verbs := model(t).Leaves(true) // of agent those below it
	for _, verb := range verbs {
		text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(verb.FullPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		page := strings.ReplaceAll(string(text), `\-`, "-")
		for _, f := range verb.Flags {
			if !f.Hidden && !strings.Contains(page, "--"+f.Name) && !strings.Contains(page, "--[no-]"+f.Name) {
				t.Errorf("the page of %s lacks --%s", verb.Name, f.Name)
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) <= len(verbs) {
		t.Errorf("got %d pages, %v, want more than %d: tare's and one for each verb", len(pages), err, len(verbs))
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("SKIPPED: what mandoc says of the pages: it is not installed")
	}
	said, _ := exec.CommandContext(t.Context(), mandoc, append([]string{"-Tlint", "-Wwarning"}, pages...)...).CombinedOutput()
	for line := range strings.Lines(string(said)) {
		if !strings.Contains(line, "missing date") { // a test's program has none
			t.Errorf("mandoc: %s", line)
		}
	}
}
