package serve_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// goSuite is a module made of Go's own server tests and of what they lean on:
//
//	http                    an alias of every exported name of net/http, its tests' hooks
//	                        among them; Server is the engine's; beside it Go's tests
//	http/httptest           Go's, on top of that alias
//	http/internal/...       Go's, which no module may import
//	testenv                 the four functions of internal/testenv that the tests call
//
// net/http is compiled with its export_test.go as one of its files, through the
// go command's overlay, so that the tests find their hooks into the client.
type goSuite struct {
	goroot string // where Go lies
	root   string // where this module lies
	dir    string // where the suite's module is written
	engine string // whose Server: serve, serve with Reuse ("reuse"), or nethttp; that and our Transport ("transport")
	match  string // the tests asked for; empty: all
	skips  []suiteSkip
}

// suiteTests are the files of Go's that the suite takes, helpers among them.
var suiteTests = []string{
	"serve_test.go", "clientserver_test.go", "responsecontroller_test.go", "fs_test.go",
	"csrf_test.go", "sniff_test.go", "netconn_test.go", "alpn_test.go",
	"request_test.go", "client_test.go", "transport_test.go",
	"main_test.go", "async_test.go",
}

// suiteHooks are the files of net/http's own test package that hand its insides
// to the tests.
var suiteHooks = []string{"export_test.go", "proxy_test.go"}

// suiteImports says what takes the place of an import.
var suiteImports = map[string]string{
	"net/http":                   "gosuite/http",
	"net/http/httptest":          "gosuite/http/httptest",
	"net/http/internal":          "gosuite/http/internal",
	"net/http/internal/testcert": "gosuite/http/internal/testcert",
	"internal/testenv":           "gosuite/testenv",
	"internal/nettrace":          "gosuite/nettrace",
	"internal/synctest":          "testing/synctest",
}

// suiteEdits are what an alias cannot do: methods and fields are http.Server's.
var suiteEdits = []suiteEdit{
	// One more mode: a TLS connection is not a socket to an engine that reads sockets itself.
	{file: "clientserver_test.go", function: "run", old: "{http1Mode, http2Mode}", new: "{http1Mode, https1Mode, http2Mode}"},
	// The suite's package has another name, which servers log.
	{file: "clientserver_test.go", function: "testWriteHeaderAfterWrite", old: "net/http_test.", new: "gosuite/http_test.", times: 2},
	{file: "main_test.go", function: "afterTest", old: "by net/http/httptest", new: "by gosuite/http/httptest"},
	// The states of connections, as the tests' server was told them.
	{file: "serve_test.go", function: "testServerShutdown", old: "cst.ts.Config.ExportAllConnsByState()", new: "cst.ts.ConnsByState()"},
	{file: "serve_test.go", function: "testServerKeepAlivesEnabled", old: "srv.ExportAllConnsIdle()", new: "cst.ts.ConnsIdle()"},
	// A hook on a server that begins to serve; BaseContext is called there too.
	{file: "serve_test.go", function: "TestServeTLS", old: "TLSConfig: tlsConf,", new: "TLSConfig: tlsConf, BaseContext: ServeHook,"},
	{file: "serve_test.go", function: "testAutomaticHTTP2_ListenAndServe", old: "TLSConfig: tlsConf,", new: "TLSConfig: tlsConf, BaseContext: ServeHook,"},
	// What middleware finds under ServerContextKey, and what TLSNextProto takes, is an http.Server.
	{file: "serve_test.go", function: "testServerContext_ServerContextKey", old: "got.(*Server)", new: "got.(*StandardServer)"},
	{file: "transport_test.go", function: "TestTransportServerProtocols", old: "func(*Server,", new: "func(*StandardServer,", times: 2},
	{file: "alpn_test.go", function: "TestNextProtoUpgrade", old: "func(*Server,", new: "func(*StandardServer,"},
	{file: "alpn_test.go", function: "handleTLSProtocol09", old: "srv *Server", new: "srv *StandardServer"},
}

// suiteReuse has the tests' servers reuse a connection's request.
var suiteReuse = []suiteEdit{
	{file: "httptest/server.go", function: "NewUnstartedServer", old: "{Handler: handler}", new: "{Handler: handler, Reuse: true}"},
	{file: "clientserver_test.go", function: "newClientServerTest", old: "{Handler: h}", new: "{Handler: h, Reuse: true}"},
}

// suiteTransport has tests of the transport run in the modes that it is for.
var suiteTransport = []suiteEdit{
	{file: "clientserver_test.go", function: "run", old: "for _, mode := range modes {", new: "for _, mode := range modes { if mode != http1Mode && mode != https1Mode { continue };"},
}

func (s *goSuite) standard(parts ...string) string {
	return filepath.Join(append([]string{s.goroot, "src", "net", "http"}, parts...)...)
}

func (s *goSuite) write() error {
	for _, step := range []func() error{s.writeModule, s.writeAlias, s.writeCopies, s.writeTests} {
		if err := step(); err != nil {
			return fmt.Errorf("writing the suite's module: %w", err)
		}
	}
	return nil
}

// writeModule writes what is ours: go.mod, the overlay and the stand-ins.
func (s *goSuite) writeModule() error {
	version, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go"), " ")
	mod := fmt.Sprintf("module gosuite\n\ngo %s\n\nrequire github.com/tarehq/tare/serve v0.0.0\n\nreplace github.com/tarehq/tare/serve => %s\n", version, s.root)
	replace := map[string]string{
		s.standard("httptrace", "suite.go"): filepath.Join(s.dir, "nettrace", "hooks.overlay"),
	}
	for _, file := range suiteHooks {
		replace[s.standard("suite_"+strings.TrimSuffix(file, "_test.go")+".go")] = s.standard(file)
	}
	if s.engine == "transport" {
		if err := s.writeDetour(replace); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	files := map[string]string{"go.mod": mod, "overlay.json": string(overlay)}
	stand := map[string]string{
		"http/engine.go":         "http/engine_serve.go",
		"http/httptest/conns.go": "http/httptest/conns.go",
		"testenv/testenv.go":     "testenv/testenv.go",
		"nettrace/nettrace.go":   "nettrace/nettrace.go",
		"nettrace/hooks.overlay": "nettrace/hooks.go",
	}
	if !s.ours() {
		stand["http/engine.go"] = "http/engine_nethttp.go"
	}
	if s.engine == "transport" {
		stand["http/transport.go"] = "http/transport.go"
	}
	for to, from := range stand {
		text, err := os.ReadFile(filepath.Join("testdata/gosuite", from))
		if err != nil {
			return err
		}
		files[to] = string(text)
	}
	for name, text := range files {
		if err := s.put(name, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// ours reports whether the server is.
func (s *goSuite) ours() bool { return s.engine == "serve" || s.engine == "reuse" }

// suiteDetours are the lines of net/http that have its Transport ask ours first, by file.
var suiteDetours = map[string]struct{ old, new string }{
	"roundtrip.go": {"\treturn t.roundTrip(req)\n}\n", `	if SuiteRoundTrip != nil && (req.URL == nil || t.alternateRoundTripper(req) == nil) {
		if res, ours, err := SuiteRoundTrip(t, req); ours {
			return res, err
		}
	}
	return t.roundTrip(req)
}

var (
	SuiteRoundTrip func(*Transport, *Request) (*Response, bool, error)
	SuiteCloseIdle func(*Transport)
)
`},
	"transport.go": {"func (t *Transport) CloseIdleConnections() {\n", `func (t *Transport) CloseIdleConnections() {
	if SuiteCloseIdle != nil {
		SuiteCloseIdle(t)
	}
`},
}

// writeDetour has the suite's net/http compiled with the detours, so that what uses a
// Transport of Go's uses ours, whatever it sets and whoever made it.
func (s *goSuite) writeDetour(replace map[string]string) error {
	for file, d := range suiteDetours {
		src, err := os.ReadFile(s.standard(file))
		if err != nil {
			return err
		}
		if n := strings.Count(string(src), d.old); n != 1 {
			return fmt.Errorf("%s: %q occurs %d times, want once: this detour does not fit this version of Go", file, d.old, n)
		}
		to := "detour/" + file + ".overlay"
		if err := s.put(to, []byte(strings.Replace(string(src), d.old, d.new, 1))); err != nil {
			return err
		}
		replace[s.standard(file)] = filepath.Join(s.dir, filepath.FromSlash(to))
	}
	return nil
}

func (s *goSuite) put(name string, text []byte) error {
	to := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// writeAlias writes a package with every exported name of net/http but those
// that the engine's file declares.
func (s *goSuite) writeAlias() error {
	own, err := exported(filepath.Join(s.dir, "http", "engine.go"))
	if err != nil {
		return err
	}
	std, err := build.ImportDir(s.standard(), 0)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("package http\n\nimport \"net/http\"\n\n")
	for _, file := range append(std.GoFiles, suiteHooks...) {
		names, err := exported(s.standard(file))
		if err != nil {
			return err
		}
		for name, tok := range names {
			if _, ok := own[name]; ok {
				continue
			}
			fmt.Fprintf(&b, "%s %s = http.%s\n", tok, name, name)
		}
	}
	return s.put("http/alias.go", b.Bytes())
}

// exported lists the exported names that a file declares, tests aside, each with
// the keyword that declares another name for it.
func exported(path string) (map[string]token.Token, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]token.Token{}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[d.Name.Name] = token.VAR
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = token.TYPE
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						names[id.Name] = d.Tok
					}
				}
			}
		}
	}
	for name := range names {
		if !token.IsExported(name) || strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Benchmark") {
			delete(names, name)
		}
	}
	return names, nil
}

// writeCopies writes what the tests lean on: two internal packages, httptest and
// the tests' data.
func (s *goSuite) writeCopies() error {
	files := []string{"internal/chunked.go", "internal/testcert/testcert.go", "httptest/httptest.go", "httptest/recorder.go", "httptest/server.go"}
	for _, file := range files {
		src, err := os.ReadFile(s.standard(filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		source, err := parseSuiteSource(file, src)
		if err != nil {
			return err
		}
		source.redirect(suiteImports)
		if err := s.edit(source); err != nil {
			return err
		}
		out, err := source.bytes()
		if err != nil {
			return err
		}
		if err := s.put(path.Join("http", file), out); err != nil {
			return err
		}
	}
	err := os.CopyFS(filepath.Join(s.dir, "http", "testdata"), os.DirFS(s.standard("testdata")))
	if errors.Is(err, fs.ErrExist) {
		return nil // left by an earlier run in the same directory
	}
	return err
}

// edit applies the edits that the file and the engine need.
func (s *goSuite) edit(source *suiteSource) error {
	all := slices.Clone(suiteEdits)
	if s.ours() {
		for _, d := range suiteDifferences {
			all = append(all, d.suiteEdit)
		}
	}
	switch s.engine {
	case "reuse":
		all = append(all, suiteReuse...)
	case "transport":
		all = append(all, suiteTransport...)
		for _, d := range transportDifferences {
			all = append(all, d.suiteEdit)
		}
	}
	for _, e := range all {
		if e.file != source.name {
			continue
		}
		if err := source.edit(e); err != nil {
			return err
		}
	}
	return nil
}

// skipped reports whether the row is one for the engine.
func (s *goSuite) skipped(row suiteSkip) bool {
	switch row.kind {
	case "difference":
		return s.engine != "nethttp"
	case "kept":
		return s.engine == "reuse"
	case "mode":
		return s.engine != "transport" // whose tests are its own rows' business
	}
	return true
}

// writeTests rewrites Go's tests.
func (s *goSuite) writeTests() error {
	found := map[string]bool{}
	for _, file := range suiteTests {
		src, err := os.ReadFile(s.standard(file))
		if err != nil {
			return err
		}
		source, err := parseSuiteSource(file, src)
		if err != nil {
			return err
		}
		source.redirect(suiteImports)
		if err := s.edit(source); err != nil {
			return err
		}
		for _, row := range s.skips {
			if row.kind == "self" {
				found[row.test] = true
				continue
			}
			ok, err := source.skip(row)
			if err != nil {
				return fmt.Errorf("%s: %w", row.place, err)
			}
			found[row.test] = found[row.test] || ok
		}
		out, err := source.bytes()
		if err != nil {
			return err
		}
		if out, err = blankUnused(file, out); err != nil {
			return err
		}
		if err := s.put("http/"+file, out); err != nil {
			return err
		}
	}
	for _, row := range s.skips {
		if !found[row.test] {
			return fmt.Errorf("%s: this version of Go has no test %s", row.place, row.test)
		}
	}
	return nil
}

// build compiles the tests, with the race detector if this test has it.
func (s *goSuite) build(t *testing.T) string {
	t.Helper()
	args := []string{"test", "-c", "-overlay=overlay.json", "-o", "gosuite.test"}
	if raceEnabled {
		args = append(args, "-race")
	}
	goCommand(t, s.dir, append(args, "./http")...)
	return filepath.Join(s.dir, "gosuite.test")
}

// goCommand runs the go command. All that it needs this module needs too.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(bytes.TrimSpace(out))
}

func suiteOutput(t *testing.T, binary string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = filepath.Dir(binary)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %s: %v", strings.Join(slices.Concat([]string{binary}, args), " "), err)
	}
	return string(out)
}
