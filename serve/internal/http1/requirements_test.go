package http1_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// testName finds the tests in a row of requirements.tsv: one of this package,
// one of its attacks, or one of the engine's package.
var testName = regexp.MustCompile(`(?:serve\.)?(?:Test|Fuzz)[A-Z]\w*(?:/[\w-]+)?`)

// testFuncs returns the names of the test functions in a directory.
func testFuncs(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("finding the tests in %s: %d files, %v", dir, len(paths), err)
	}
	var names []string
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

// TestRequirementsNameTests makes sure that each row of requirements.tsv names
// tests that exist or says why there are none.
func TestRequirementsNameTests(t *testing.T) {
	here, engine := testFuncs(t, "."), testFuncs(t, filepath.Join("..", ".."))
	for _, row := range tsv(t, "requirements.tsv", 2) {
		id, by := row[0], row[1]
		if why, ok := strings.CutPrefix(by, "not ours: "); ok {
			if why == "" {
				t.Errorf("%s: no reason", id)
			}
			continue
		}
		names := testName.FindAllString(by, -1)
		if len(names) == 0 {
			t.Errorf("%s: %q names no test", id, by)
		}
		for _, name := range names {
			fn, attack, _ := strings.Cut(name, "/")
			known := here
			if bare, ok := strings.CutPrefix(fn, "serve."); ok {
				fn, known = bare, engine
			}
			if !slices.Contains(known, fn) {
				t.Errorf("%s: there is no %s", id, name)
			}
			if attack == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join("testdata", "attacks", attack+".http")); err != nil {
				t.Errorf("%s: there is no %s: %v", id, name, err)
			}
		}
	}
}

// TestRequirementsAreWhole compares the rows with every binding sentence of the
// two standards.
func TestRequirementsAreWhole(t *testing.T) {
	path := filepath.Join(corpora(t), "rfc_requirements.jsonl.gz")
	rows := map[string]bool{}
	for _, row := range tsv(t, "requirements.tsv", 2) {
		if rows[row[0]] {
			t.Errorf("two rows for %s", row[0])
		}
		rows[row[0]] = true
	}
	binding := []string{"MUST", "MUST NOT", "REQUIRED", "SHALL", "SHALL NOT"}
	jsonLines(t, path, func(line []byte) {
		var r struct {
			ID, RFC, Text string
			Keywords      []string
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}
		if r.RFC == "RFC9111" || !slices.ContainsFunc(r.Keywords, func(k string) bool { return slices.Contains(binding, k) }) {
			return
		}
		if !rows[r.ID] {
			t.Errorf("no row for %s: %s", r.ID, r.Text)
		}
		delete(rows, r.ID)
	})
	for id := range rows {
		t.Errorf("the row for %s belongs to no sentence", id)
	}
}

// TestLengthAndChunkedCloses: whoever lets both stand must still close the
// connection after the answer, and nobody may see the length.
func TestLengthAndChunkedCloses(t *testing.T) {
	const in = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
	p, h := parse(t, in, &http1.Options{Lenient: http1.Lenient{LengthAndChunked: true}})
	if !p.Close || p.Length != http1.Chunked || p.HasLength || len(h) != 0 {
		t.Errorf("Parse(%q) = %+v, fields %v", in, p, h)
	}
}

// TestOldChunkedCloses: the framing of such a request is faulty, so nothing
// after it may be read.
func TestOldChunkedCloses(t *testing.T) {
	const in = "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
	p, _ := parse(t, in, &http1.Options{Lenient: http1.Lenient{OldChunked: true}})
	if p.Length != 0 || !p.Close {
		t.Errorf("Parse(%q) = %+v", in, p)
	}
}
