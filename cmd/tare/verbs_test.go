package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestVerbsAreSeparate finds no reference from one verb to another: main.go alone names them
// all. A file names at most one verb's type, and no verb's package is imported by another's.
func TestVerbsAreSeparate(t *testing.T) {
	here := reflect.TypeFor[verbs]().PkgPath()
	var names []string            // types of the verbs in this package
	packages := map[string]bool{} // import paths of the others
	for field := range reflect.TypeFor[verbs]().Fields() {
		if field.Type.PkgPath() == here {
			names = append(names, field.Type.Name())
		} else {
			packages[field.Type.PkgPath()] = true
		}
	}
	if len(names) < 5 || len(packages) < 5 {
		t.Fatalf("found the verbs %q here and %d packages of verbs, want 5 of each: are they still found?", names, len(packages))
	}
	module := strings.TrimSuffix(here, "cmd/tare")
	dirs := []string{"."}
	for path := range packages {
		dirs = append(dirs, filepath.Join("../..", strings.TrimPrefix(path, module)))
	}
	for _, dir := range dirs {
		for path, file := range parseDir(t, dir) {
			if path == "main.go" {
				continue
			}
			for _, spec := range file.Imports {
				if imported, _ := strconv.Unquote(spec.Path.Value); packages[imported] {
					t.Errorf("%s imports %s: share what both verbs need in a package that is not a verb's", path, imported)
				}
			}
			if named := verbsIn(file, names); dir == "." && len(named) > 1 {
				t.Errorf("%s names the verbs %q: share what they need in a package of its own", path, named)
			}
		}
	}
}

// parseDir parses the Go files of a folder, tests excluded.
func parseDir(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = file
	}
	if len(files) == 0 {
		t.Fatalf("%s has no Go files", dir)
	}
	return files
}

// verbsIn returns which of the names a file uses.
func verbsIn(file *ast.File, names []string) []string {
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && slices.Contains(names, id.Name) {
			found[id.Name] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(found))
}

// TestMeant has a command line be that of the verb that it stands for.
func TestMeant(t *testing.T) {
	for line, want := range map[string]string{
		"doctor --since 1h DIR": "watch", "doctor DIR --since=1h": "watch", "doctor --sinc 1h DIR": "doctor", "doctor localhost:6060": "doctor",
		"load shop.yaml -r 5": "flow", "load --from site.har new.yaml": "flow", "load localhost:8080": "load", "-v": "version", "run nesting": "run",
	} {
		if got := meant(nil, strings.Fields(line))[0]; got != want {
			t.Errorf("tare %s: got the verb %s, want %s", line, got, want)
		}
	}
}
