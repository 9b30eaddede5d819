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
	{"RegisterOnShutdown", "TareRegisterOnShutdown", "func(*Server, func())",
		"if TareRegisterOnShutdown != nil { TareRegisterOnShutdown(%s, %s) }"},
	{"SetKeepAlivesEnabled", "TareSetKeepAlives", "func(*Server, bool)",
		"if TareSetKeepAlives != nil { TareSetKeepAlives(%s, %s) }"},
}

// serveSource is added to package main and sets the hooks. The names of its imports are
// its own: a package may well have a function serve.
const serveSource = `package main

import (
	tareContext "context"
	tareNet "net"
	tareHTTP "net/http"
	tareSync "sync"

	tareServe "github.com/tarehq/tare/serve"
)

// Added by tare for one build: every http.Server serves by serve.Server.
func init() {
	type state struct {
		own           *tareServe.Server
		serves, ended bool
	}
	var mu tareSync.Mutex
	states := map[*tareHTTP.Server]*state{}
	// serve.Server calls methods with hooks: so mu is not locked while it is called.
	find := func(s *tareHTTP.Server) *state { // mu is locked
		if states[s] == nil {
			states[s] = &state{own: new(tareServe.Server)}
		}
		return states[s]
	}
	begin := func(s *tareHTTP.Server, l tareNet.Listener) *tareServe.Server { // nil: net/http serves
		mu.Lock()
		defer mu.Unlock()
		st := find(s)
		if st.ended || l.Addr().Network() == "handed" {
			return nil
		}
		if own := st.own; !st.serves {
			st.serves = true
			own.Addr, own.Handler, own.DisableGeneralOptionsHandler = s.Addr, s.Handler, s.DisableGeneralOptionsHandler
			own.TLSConfig, own.ReadTimeout, own.ReadHeaderTimeout = s.TLSConfig, s.ReadTimeout, s.ReadHeaderTimeout
			own.WriteTimeout, own.IdleTimeout, own.MaxHeaderBytes = s.WriteTimeout, s.IdleTimeout, s.MaxHeaderBytes
			own.TLSNextProto, own.ConnState, own.ErrorLog = s.TLSNextProto, s.ConnState, s.ErrorLog
			own.BaseContext, own.ConnContext, own.HTTP2, own.Protocols = s.BaseContext, s.ConnContext, s.HTTP2, s.Protocols
		}
		return st.own
	}
	end := func(s *tareHTTP.Server) *tareServe.Server { // nil: it has not served by serve.Server
		mu.Lock()
		defer mu.Unlock()
		if st := find(s); st.serves {
			return st.own
		}
		states[s].ended = true
		return nil
	}
	get := func(s *tareHTTP.Server) *tareServe.Server {
		mu.Lock()
		defer mu.Unlock()
		return find(s).own
	}
	tareHTTP.TareServe = func(s *tareHTTP.Server, l tareNet.Listener) (error, bool) {
		if own := begin(s, l); own != nil {
			return own.Serve(l), true
		}
		return nil, false
	}
	tareHTTP.TareServeTLS = func(s *tareHTTP.Server, l tareNet.Listener, cert, key string) (error, bool) {
		if own := begin(s, l); own != nil {
			return own.ServeTLS(l, cert, key), true
		}
		return nil, false
	}
	tareHTTP.TareShutdown = func(s *tareHTTP.Server, ctx tareContext.Context) (error, bool) {
		if own := end(s); own != nil {
			return own.Shutdown(ctx), true
		}
		return nil, false
	}
	tareHTTP.TareClose = func(s *tareHTTP.Server) (error, bool) {
		if own := end(s); own != nil {
			return own.Close(), true
		}
		return nil, false
	}
	tareHTTP.TareRegisterOnShutdown = func(s *tareHTTP.Server, f func()) {
		get(s).RegisterOnShutdown(f)
	}
	tareHTTP.TareSetKeepAlives = func(s *tareHTTP.Server, on bool) {
		get(s).SetKeepAlivesEnabled(on)
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
