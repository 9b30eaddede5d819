package serve_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// suiteSource is a file of Go's on its way into the temporary module. Lines keep
// their numbers, so that a failure can be looked up in Go's own file.
type suiteSource struct {
	name  string
	src   []byte
	fset  *token.FileSet
	file  *ast.File
	parts []suitePart
}

// suiteEdit replaces text in one function of one of Go's files.
type suiteEdit struct {
	file, function, old, new string
	times                    int // how often old stands there; zero: once
}

// suitePart takes the place of the bytes in [from, to).
type suitePart struct {
	from, to int
	text     string
}

func parseSuiteSource(name string, src []byte) (*suiteSource, error) {
	s := &suiteSource{name: name, src: src, fset: token.NewFileSet()}
	var err error
	s.file, err = parser.ParseFile(s.fset, name, src, parser.SkipObjectResolution)
	return s, err
}

func (s *suiteSource) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *suiteSource) replace(from, to token.Pos, text string) {
	s.parts = append(s.parts, suitePart{s.offset(from), s.offset(to), text})
}

// bytes is the source with every part in its place.
func (s *suiteSource) bytes() ([]byte, error) {
	slices.SortStableFunc(s.parts, func(a, b suitePart) int { return cmp.Compare(a.from, b.from) })
	var b bytes.Buffer
	at := 0
	for _, p := range s.parts {
		if p.from < at {
			return nil, fmt.Errorf("%s: two edits overlap at byte %d", s.name, p.from)
		}
		b.Write(s.src[at:p.from])
		b.WriteString(p.text)
		at = p.to
	}
	b.Write(s.src[at:])
	return b.Bytes(), nil
}

// redirect makes the file import the module's stand-ins instead of Go's packages.
func (s *suiteSource) redirect(paths map[string]string) {
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || paths[path] == "" {
			continue
		}
		s.replace(spec.Path.Pos(), spec.Path.End(), strconv.Quote(paths[path]))
	}
}

// edit applies an edit to the declaration that it names, or fails: another
// version of Go has other lines.
func (s *suiteSource) edit(e suiteEdit) error {
	fn := s.function(e.function)
	if fn == nil {
		return fmt.Errorf("%s has no function %s: this edit does not fit this version of Go", s.name, e.function)
	}
	from, to := s.offset(fn.Pos()), s.offset(fn.End())
	body := string(s.src[from:to])
	if n := strings.Count(body, e.old); n != max(1, e.times) {
		return fmt.Errorf("%s: %s: %q occurs %d times, want %d: this edit does not fit this version of Go",
			s.name, e.function, e.old, n, max(1, e.times))
	}
	for at := 0; ; {
		i := strings.Index(body[at:], e.old)
		if i < 0 {
			return nil
		}
		start := from + at + i
		s.parts = append(s.parts, suitePart{start, start + len(e.old), e.new})
		at += i + len(e.old)
	}
}

func (s *suiteSource) function(name string) *ast.FuncDecl {
	for _, decl := range s.file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == name {
			return fn
		}
	}
	return nil
}

// skip makes the test that the row names skip itself, and reports whether this
// file has it.
func (s *suiteSource) skip(row suiteSkip) (bool, error) {
	name, mode, _ := strings.Cut(row.test, "/")
	fn := s.function(name)
	if fn == nil {
		return false, nil
	}
	call := fmt.Sprintf("%s.Skip(%q)", fn.Type.Params.List[0].Names[0].Name, row.kind+": "+row.reason)
	run, body := s.runs(fn)
	if mode == "" {
		s.replace(fn.Body.Lbrace+1, fn.Body.Lbrace+1, " "+call+"; ")
		if row.kind == "white-box" {
			s.cut(cmp.Or(body, fn.Body))
		}
		return true, nil
	}
	if body == nil {
		return true, fmt.Errorf("%s: %s does not run in modes", s.name, name)
	}
	var params []*ast.Ident
	for _, field := range run.Params.List {
		params = append(params, field.Names...)
	}
	if len(params) != 2 {
		return true, fmt.Errorf("%s: %s takes %d parameters, want t and mode", s.name, name, len(params))
	}
	guard := fmt.Sprintf(" if %s == %q { %s.Skip(%q) }; ", params[1].Name, mode, params[0].Name, row.kind+": "+row.reason)
	s.replace(body.Lbrace+1, body.Lbrace+1, guard)
	return true, nil
}

// runs finds the function that a test hands to the suite's run or runSynctest.
func (s *suiteSource) runs(test *ast.FuncDecl) (typ *ast.FuncType, body *ast.BlockStmt) {
	ast.Inspect(test.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "run" && name.Name != "runSynctest" {
			return true
		}
		switch f := call.Args[1].(type) {
		case *ast.FuncLit:
			typ, body = f.Type, f.Body
		case *ast.Ident:
			if fn := s.function(f.Name); fn != nil {
				typ, body = fn.Type, fn.Body
			}
		}
		return false
	})
	return typ, body
}

// cut empties a body, but for its lines.
func (s *suiteSource) cut(body *ast.BlockStmt) {
	lines := bytes.Count(s.src[s.offset(body.Lbrace):s.offset(body.Rbrace)], []byte("\n"))
	s.replace(body.Lbrace+1, body.Rbrace, strings.Repeat("\n", lines))
}

// blankUnused keeps imports compiling that cut bodies no longer use.
func blankUnused(name string, src []byte) ([]byte, error) {
	s, err := parseSuiteSource(name, src)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if spec.Name == nil && !used[path[strings.LastIndexByte(path, '/')+1:]] {
			s.replace(spec.Pos(), spec.Pos(), "_ ")
		}
	}
	return s.bytes()
}

const sampleSource = `package p

import (
	"net/http"
	"os"
)

func TestA(t *testing.T) { run(t, testA) }
func testA(t *testing.T, mode testMode) {
	os.Exit(1)
}
func TestB(t *testing.T) {
	run(t, func(t *testing.T, mode testMode) { http.Get("b") })
}
`

func TestGoSuiteSource(t *testing.T) {
	type rewrite func(s *suiteSource) error
	skip := func(row suiteSkip) rewrite {
		return func(s *suiteSource) error { _, err := s.skip(row); return err }
	}
	edit := func(e suiteEdit) rewrite { return func(s *suiteSource) error { return s.edit(e) } }
	for _, c := range []struct {
		rewrite   rewrite
		old, want string // in sampleSource, and what takes its place
		err       string
	}{
		{skip(suiteSkip{test: "TestA", kind: "client", reason: "r"}), "T) { run", `T) { t.Skip("client: r");  run`, ""},
		{skip(suiteSkip{test: "TestA/h2", kind: "mode", reason: "r"}), "mode testMode) {\n\tos", "mode testMode) { if mode == \"h2\" { t.Skip(\"mode: r\") }; \n\tos", ""},
		{skip(suiteSkip{test: "TestB/h1", kind: "mode", reason: "r"}), "mode testMode) { http", `mode testMode) { if mode == "h1" { t.Skip("mode: r") };  http`, ""},
		{edit(suiteEdit{function: "testA", old: "1", new: "2"}), "Exit(1)", "Exit(2)", ""},
		{edit(suiteEdit{function: "testA", old: "3", new: "2"}), "", "", `f: testA: "3" occurs 0 times, want 1: this edit does not fit this version of Go`},
		{edit(suiteEdit{function: "testC", old: "3"}), "", "", "f has no function testC: this edit does not fit this version of Go"},
		{func(s *suiteSource) error { s.redirect(map[string]string{"net/http": "x/http"}); return nil }, "net/http", "x/http", ""},
	} {
		s, err := parseSuiteSource("f", []byte(sampleSource))
		if err != nil {
			t.Fatal(err)
		}
		if got := errorText(c.rewrite(s)); got != c.err {
			t.Errorf("rewriting for %q: error %q, want %q", c.want, got, c.err)
		}
		got, err := s.bytes()
		if want := strings.Replace(sampleSource, c.old, c.want, 1); err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
}

func TestGoSuiteCut(t *testing.T) {
	s, err := parseSuiteSource("f", []byte(sampleSource))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.skip(suiteSkip{test: "TestA", kind: "white-box", reason: "r"}); err != nil {
		t.Fatal(err)
	}
	cut, err := s.bytes()
	if err != nil {
		t.Fatal(err)
	}
	got, err := blankUnused("f", cut)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("\"os\"", "_ \"os\"", "\tos.Exit(1)\n", "\n", "T) { run", "T) { t.Skip(\"white-box: r\");  run").Replace(sampleSource)
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
