package tare_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unshown are packages for others that have no runnable example. Take one off the list that
// got one.
var unshown = []string{"kube/carry", "kube/operator", "kube/testcluster", "lab/captured", "lab/fleet/agent", "lab/fleet/certs", "lab/fleet/wire", "lab/generator",
	"web", "web/history", "web/history/historytest", "web/links", "web/trend", "web/upload"}

// TestOutsideReadersHaveExamples wants a runnable example in each package that others may
// import: all but commands, specimens and what is internal.
func TestOutsideReadersHaveExamples(t *testing.T) {
	var found []string
	looked := 0
	for _, p := range packages(t) {
		rel := p.rel()
		if p.Name == "main" || rel == "" || rel == "arms" || strings.HasPrefix(rel, "arms/") || strings.HasPrefix(rel, "cmd/") || strings.Contains("/"+rel+"/", "/internal/") {
			continue
		}
		looked++
		tests, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(tests, func(file string) bool {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Contains(text, []byte("\nfunc Example"))
		}) {
			found = append(found, rel)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, unshown) {
		t.Errorf("packages for others without an example:\n got %q\nwant %q\nwrite func Example… in a test file, with // Output:, or add the package to the list", found, unshown)
	}
	if looked < 60 {
		t.Errorf("looked at %d packages, want 60 or more: are they still found?", looked)
	}
}
