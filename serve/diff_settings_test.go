package serve_test

import (
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/tarehq/tare/serve"
)

// TestFields holds serve.Server to have every field of http.Server, with its type, and
// docs/serve.md to have a row for each that names tests which there are.
func TestFields(t *testing.T) {
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	ours := reflect.TypeFor[serve.Server]()
	for theirs := range reflect.TypeFor[http.Server]().Fields() {
		if !theirs.IsExported() {
			continue
		}
		own, ok := ours.FieldByName(theirs.Name)
		if !ok || own.Type != theirs.Type {
			t.Errorf("serve.Server has %v for http.Server's %s %v", own.Type, theirs.Name, theirs.Type)
		}
		row := regexp.MustCompile("(?m)^\\| `" + theirs.Name + "` \\| [^|]+ \\| ([^|]+) \\|$").FindSubmatch(page)
		if row == nil {
			t.Errorf("docs/serve.md has no row with tests for %s", theirs.Name)
			continue
		}
		for _, name := range regexp.MustCompile("`(Test[^`]+)`").FindAllStringSubmatch(string(row[1]), -1) {
			if !tests[name[1]] {
				t.Errorf("docs/serve.md names %s for %s: there is no such test", name[1], theirs.Name)
			}
		}
	}
}

// testNames returns the names of this package's tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return names
}
