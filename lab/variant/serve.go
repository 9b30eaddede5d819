package variant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const serveModule = "github.com/tarehq/tare/serve"

// hooks are the methods of http.Server that serve.Server takes over. The overlaid
// net/http calls the variable, where it is set, at the beginning of the method; what
// serve hands to net/http (HTTP/2) comes with a listener of serve's own and goes on.
var hooks = []struct{ method, variable, signature, call string }{
	{"Serve", "TareServe", "func(*Server, net.Listener) (error, bool)",
		"if TareServe != nil { if err, ok := TareServe(%s, %s); ok { return err } }"},
	{"ServeTLS", "TareServeTLS", "func(*Server, net.Listener, string, string) (error, bool)",
		"if TareServeTLS != nil { if err, ok := TareServeTLS(%s, %s, %s, %s); ok { return err } }"},
	{"Shutdown", "TareShutdown", "func(*Server, context.Context) (error, bool)",
		"if TareShutdown != nil { if err, ok := TareShutdown(%s, %s); ok { return err } }"},
	{"Close", "TareClose", "func(*Server) (error, bool)",
		"if TareClose != nil { if err, ok := TareClose(%s); ok { return err } }"},
	{"RegisterOnShutdown", "TareRegisterOnShutdown", "func(*Server, func()) bool",
		"if TareRegisterOnShutdown != nil && TareRegisterOnShutdown(%s, %s) { return }"},
	{"SetKeepAlivesEnabled", "TareSetKeepAlives", "func(*Server, bool) bool",
		"if TareSetKeepAlives != nil && TareSetKeepAlives(%s, %s) { return }"},
}

// serveSource is added to package main and sets the hooks.
const serveSource = `package main

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/tarehq/tare/serve"
)

// Added by tare for one build: every http.Server serves by serve.Server.
func init() {
	var mu sync.Mutex
	servers := map[*http.Server]*serve.Server{}
	find := func(s *http.Server) *serve.Server {
		mu.Lock()
		defer mu.Unlock()
		own := servers[s]
		if own == nil {
			own = &serve.Server{
				Addr: s.Addr, Handler: s.Handler, DisableGeneralOptionsHandler: s.DisableGeneralOptionsHandler,
				TLSConfig: s.TLSConfig, ReadTimeout: s.ReadTimeout, ReadHeaderTimeout: s.ReadHeaderTimeout,
				WriteTimeout: s.WriteTimeout, IdleTimeout: s.IdleTimeout, MaxHeaderBytes: s.MaxHeaderBytes,
				TLSNextProto: s.TLSNextProto, ConnState: s.ConnState, ErrorLog: s.ErrorLog,
				BaseContext: s.BaseContext, ConnContext: s.ConnContext, HTTP2: s.HTTP2, Protocols: s.Protocols,
			}
			servers[s] = own
		}
		return own
	}
	known := func(s *http.Server) *serve.Server {
		mu.Lock()
		defer mu.Unlock()
		return servers[s]
	}
	handed := func(l net.Listener) bool { return l.Addr().Network() == "handed" }
	http.TareServe = func(s *http.Server, l net.Listener) (error, bool) {
		if handed(l) {
			return nil, false
		}
		return find(s).Serve(l), true
	}
	http.TareServeTLS = func(s *http.Server, l net.Listener, cert, key string) (error, bool) {
		if handed(l) {
			return nil, false
		}
		return find(s).ServeTLS(l, cert, key), true
	}
	http.TareShutdown = func(s *http.Server, ctx context.Context) (error, bool) {
		if own := known(s); own != nil {
			return own.Shutdown(ctx), true
		}
		return nil, false
	}
	http.TareClose = func(s *http.Server) (error, bool) {
		if own := known(s); own != nil {
			return own.Close(), true
		}
		return nil, false
	}
	http.TareRegisterOnShutdown = func(s *http.Server, f func()) bool {
		find(s).RegisterOnShutdown(f)
		return false // also where it never serves
	}
	http.TareSetKeepAlives = func(s *http.Server, on bool) bool {
		if own := known(s); own != nil {
			own.SetKeepAlivesEnabled(on)
			return true
		}
		return false
	}
}
`

// addServe replaces http.Server's methods in this build's net/http. No source of the
// program changes, so frameworks that make the server themselves are covered too.
func (a *applier) addServe(ctx context.Context) error {
	if a.ServeModule == "" {
		return errors.New("the source of serve is not known here: name the folder of tare's source with --module")
	}
	out, err := a.goCommand(ctx, "list", "-deps", "-f", "{{.ImportPath}}", ".")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(out)), "net/http") {
		return errors.New("the program does not use net/http: there is no http.Server to replace")
	}
	if out, err = a.goCommand(ctx, "env", "GOROOT"); err != nil {
		return err
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "net", "http", "server.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	hooked, err := hookServer(source)
	if err != nil {
		return fmt.Errorf("net/http of this toolchain: %w", err)
	}
	name, err := a.write("server.go", hooked)
	if err != nil {
		return err
	}
	a.overlay[original] = name
	at, err := filepath.Abs(a.ServeModule)
	if err != nil {
		return err
	}
	a.edits = append(a.edits, "-require="+serveModule+"@v0.0.0", "-replace="+serveModule+"="+at)
	return a.addSource("tare_serve.go", serveSource)
}

// hookServer adds the hooks to the source of net/http's server.go.
func hookServer(source []byte) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "server.go", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	insert := map[int]string{} // offset → text
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || !isServerMethod(fn) {
			continue
		}
		for _, h := range hooks {
			if h.method == fn.Name.Name {
				insert[set.Position(fn.Body.Lbrace).Offset+1] = fmt.Sprintf(h.call, names(fn)...) + "; "
			}
		}
	}
	if len(insert) != len(hooks) {
		return nil, fmt.Errorf("found %d of the %d methods of http.Server that serve takes over", len(insert), len(hooks))
	}
	var out bytes.Buffer
	for i, c := range source {
		out.WriteString(insert[i])
		out.WriteByte(c)
	}
	out.WriteString("\n// Added by tare for one build.\nvar (\n")
	for _, h := range hooks {
		fmt.Fprintf(&out, "\t%s %s\n", h.variable, h.signature)
	}
	out.WriteString(")\n")
	return out.Bytes(), nil
}

// isServerMethod reports whether a function has the receiver *Server.
func isServerMethod(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return false
	}
	star, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := star.X.(*ast.Ident)
	return ok && name.Name == "Server"
}

// names are those of the receiver and the parameters.
func names(fn *ast.FuncDecl) []any {
	var all []any
	for _, list := range []*ast.FieldList{fn.Recv, fn.Type.Params} {
		for _, field := range list.List {
			for _, n := range field.Names {
				all = append(all, n.Name)
			}
		}
	}
	return all
}
