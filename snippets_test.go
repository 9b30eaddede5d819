package tare_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snippetVars declares, by page, what its snippets of Go use and do not declare.
var snippetVars = map[string]string{
	"docs/middleware.md": `var (
	app             http.Handler
	accessLog       *accesslog.Log
	sites, timeouts func(http.Handler) http.Handler
	limits          *limit.Limit
	rateLimit       *ratelimit.Limiter
	auth            *jwt.Verifier
	provider        trace.TracerProvider
)
`,
}

// snippetImports are packages that snippets may use.
var snippetImports = []string{
	"context", "crypto/tls", "errors", "net/http", "os", "time", "go.opentelemetry.io/otel/trace",
	module + "/serve", module + "/serve/chain", module + "/serve/client", module + "/serve/client/breaker", module + "/serve/client/transport", module + "/serve/compress",
	module + "/serve/middleware/accesslog", module + "/serve/middleware/clientaddr", module + "/serve/middleware/jwt",
	module + "/serve/middleware/limit", module + "/serve/middleware/metrics", module + "/serve/middleware/ratelimit",
	module + "/serve/middleware/recovery", module + "/serve/middleware/requestid", module + "/serve/middleware/secure",
	module + "/serve/middleware/timeout", module + "/serve/redislimit", module + "/serve/router", module + "/serve/tracing",
}

// TestSnippets compiles the snippets of Go in pages.
func TestSnippets(t *testing.T) {
	for page, vars := range snippetVars {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := snippetsOf(string(content))
		if len(found) == 0 {
			t.Errorf("%s has no snippet of Go", page)
		}
		if err := buildSnippets(t, page, vars, found); err != nil {
			t.Errorf("%s: %v", page, err)
		}
	}
}

// TestSnippetOfChi holds what the page has for services on chi, whose module is not among those of
// go.work, against the test that runs it.
func TestSnippetOfChi(t *testing.T) {
	text, err := os.ReadFile("docs/middleware.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("arms/rivals/moved_test.go")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```\n(// routeContext .*?)^```$").FindSubmatch(text)
	if block == nil || !bytes.Contains(code, block[1]) {
		t.Errorf("the page has not the lines of arms/rivals/moved_test.go, but %q", block)
	}
}

// TestSnippetsWrong compiles snippets that are wrong.
func TestSnippetsWrong(t *testing.T) {
	for _, code := range []string{"chain.New().Then(nothing)", "h := chain.New().Then(app)", "if {"} {
		found := snippetsOf("One\n\n```go\n" + code + "\n```\n")
		if len(found) != 1 || found[0].line != 4 {
			t.Fatalf("%q: found %v, want one snippet, in line 4", code, found)
		}
		err := buildSnippets(t, "page.md", "var app http.Handler\n", found)
		if err == nil || !strings.Contains(err.Error(), "page.md:4") {
			t.Errorf("%q: %v, want an error of page.md:4", code, err)
		}
	}
}

// snippet is a fenced block of Go, and the line that it begins in.
type snippet struct {
	code string
	line int
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

func snippetsOf(text string) (all []snippet) {
	for _, m := range goBlock.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, snippet{text[m[2]:m[3]], 1 + strings.Count(text[:m[2]], "\n")})
	}
	return all
}

// buildSnippets compiles each snippet as the body of a function, as part of the modules
// that go.work joins.
func buildSnippets(t *testing.T, page, vars string, snippets []snippet) error {
	t.Helper()
	var body bytes.Buffer
	body.WriteString(vars)
	for _, s := range snippets {
		fmt.Fprintf(&body, "func _() {\n//line %s:%d\n%s%s}\n", page, s.line, s.code, usesOf(s.code))
	}
	file := new(bytes.Buffer)
	file.WriteString("package snippets\n")
	for _, imported := range snippetImports {
		if regexp.MustCompile(`\b` + path.Base(imported) + `\.`).Match(body.Bytes()) {
			fmt.Fprintf(file, "import %q\n", imported)
		}
	}
	body.WriteTo(file)
	name := filepath.Join(t.TempDir(), "snippets.go")
	if err := os.WriteFile(name, file.Bytes(), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", name).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// usesOf uses what a snippet declares, as a reader's program would.
func usesOf(code string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+code+"\n}", 0)
	if err != nil {
		return "" // go build says so, with the place
	}
	var uses strings.Builder
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if assign, ok := s.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
			for _, v := range assign.Lhs {
				fmt.Fprintf(&uses, "_ = %s\n", v.(*ast.Ident).Name)
			}
		}
	}
	return uses.String()
}
