// Package framework knows the functions of net/http, routers and engines: which hand a
// request on, which answer it, and to what part of the server the others belong.
package framework

import (
	"slices"
	"strings"

	"github.com/tarehq/tare/cost/internal/symbol"
)

// Role is what a part is to a request.
type Role int

// Roles of parts.
const (
	Engine Role = iota
	Router
	Client
)

// Part is a part of the server, or of a client.
type Part struct {
	Role Role
	Name string
}

// Dispatches reports whether a function hands a request to a handler that it does not
// know.
func Dispatches(fn string) bool { return dispatchers[fn] }

// RouterOf returns the name of the router whose package it is.
func RouterOf(pkg string) (string, bool) {
	name, ok := routers[pkg]
	return name, ok
}

// CallsDirectly reports whether a package is a framework's that calls the next of a chain
// as an ordinary function value, without a frame of its own between.
func CallsDirectly(pkg string) bool { return direct[pkg] }

var direct = map[string]bool{
	"github.com/labstack/echo/v4": true, "github.com/labstack/echo/v5": true, "github.com/valyala/fasthttp": true,
	"github.com/julienschmidt/httprouter": true, "github.com/uptrace/bunrouter": true,
	"github.com/go-kratos/kratos/v2/transport/http": true, KratosRPC: true,
}

// dispatchers hand a request to a handler that they do not know.
var dispatchers = map[string]bool{
	"net/http.HandlerFunc.ServeHTTP":                         true,
	"net/http.serverHandler.ServeHTTP":                       true,
	"net/http.(*ServeMux).ServeHTTP":                         true,
	"github.com/valyala/fasthttp.(*Server).serveConn":        true,
	"github.com/valyala/fasthttp.(*Server).serveConnCounted": true, // since v1.73

	"github.com/urfave/negroni.HandlerFunc.ServeHTTP":                         true,
	"github.com/urfave/negroni/v2.HandlerFunc.ServeHTTP":                      true,
	"github.com/urfave/negroni/v3.HandlerFunc.ServeHTTP":                      true,
	"github.com/caddyserver/caddy/v2/modules/caddyhttp.HandlerFunc.ServeHTTP": true,
}

// routers are packages whose frames are a router's, with its name.
var routers = map[string]string{
	"github.com/go-chi/chi/v5":                      "chi",
	"github.com/go-chi/chi":                         "chi",
	"github.com/gin-gonic/gin":                      "gin",
	"github.com/labstack/echo/v4":                   "echo",
	"github.com/labstack/echo/v5":                   "echo",
	"github.com/gofiber/fiber/v2":                   "fiber",
	"github.com/gofiber/fiber/v3":                   "fiber",
	"github.com/gorilla/mux":                        "gorilla/mux",
	"github.com/julienschmidt/httprouter":           "httprouter",
	"github.com/uptrace/bunrouter":                  "bunrouter",
	"github.com/tarehq/tare/serve/router":           "serve/router",
	"github.com/fasthttp/router":                    "fasthttp/router",
	"github.com/cloudwego/hertz/pkg/app":            "hertz",
	"github.com/cloudwego/hertz/pkg/route":          "hertz",
	"github.com/go-kratos/kratos/v2/transport/http": "kratos",
	KratosRPC:                "kratos",
	"connectrpc.com/connect": "connect",
}

// handing are the functions by which routers hand a request on: what they call is
// an owner, and so are they even where a middleware calls them. A function
// literal goes by the one that it is written in.
var handing = []string{
	"ServeHTTP", "ServeHTTPError", "Next", "next", "nextCustom", "add", "Handle", "HandlerFunc", "Handler",
	"WrapH", "WrapF", "WrapHandler", "routeHTTP", "handleHTTPRequest", "requestHandler",
	"serveHTTP", "buildRouterChains", // of echo's version 5
	// Of fiber's version 3, around handlers of other forms than its own.
	"toFiberHandler", "adaptFiberHandler", "adaptExpressHandler", "adaptFastHTTPHandler", "wrapHTTPHandler",
	"NewUnaryHandler", "NewUnaryHandlerSimple", "NewServerStreamHandler", "NewClientStreamHandler", "NewBidiStreamHandler",
	"NewServerStreamHandlerSimple", "NewClientStreamHandlerSimple",
}

// Hands reports whether a router's function hands a request on.
func Hands(fn string) bool {
	name := strings.ReplaceAll(strings.TrimSuffix(fn[len(symbol.Package(fn))+1:], "-fm"), "[...]", "")
	if end := strings.LastIndexByte(name, ')'); end >= 0 {
		name = strings.TrimPrefix(name[end+1:], ".")
	}
	name, _, _ = strings.Cut(name, ".")
	return slices.Contains(handing, name)
}

// OwnMiddleware reports whether a router's function is a middleware that comes
// with it, in its own package: a literal in a function, not in a method, which
// the chain calls.
func OwnMiddleware(fn, caller string) bool {
	return symbol.IsClosure(fn) && !strings.Contains(fn, "(") && !Hands(fn) && strings.HasSuffix(caller, ").Next")
}

// engines are packages that read requests and write answers, with their name.
var engines = map[string]string{
	"github.com/tarehq/tare/serve":       "serve",
	"github.com/tarehq/tare/serve/chain": "serve/chain",
	"github.com/tarehq/tare/arms/arm":    "arm",
	"github.com/cloudwego/netpoll":       "netpoll",
	"github.com/gorilla/websocket":       "gorilla/websocket",
}

// engineTrees are engines with all packages below them.
var engineTrees = map[string]string{
	"github.com/valyala/fasthttp":           "fasthttp",
	"github.com/tarehq/tare/serve/internal": "serve",
	"github.com/cloudwego/hertz":            "hertz",
	"github.com/coder/websocket":            "coder/websocket",
	"google.golang.org/grpc":                "grpc",
}

// engineOf returns the name of the engine to which a package belongs.
func engineOf(pkg string) (string, bool) {
	if symbol.Standard(pkg) {
		return "", false
	}
	if name, ok := engines[pkg]; ok {
		return name, true
	}
	if _, ok := routers[pkg]; ok || middlewares(pkg) {
		return "", false
	}
	for i := len(pkg); i > 0; i = strings.LastIndexByte(pkg[:i], '/') {
		if name, ok := engineTrees[pkg[:i]]; ok {
			return name, true
		}
	}
	return "", false
}

// Foreign reports whether a package is the standard library's or belongs to a
// router or engine: none of its functions is a user's middleware or handler. The
// middlewares that come with a framework are as good as a user's.
func Foreign(pkg string) bool {
	if symbol.Standard(pkg) {
		return true
	}
	if middlewares(pkg) {
		return false
	}
	if _, ok := engineOf(pkg); ok {
		return true
	}
	for i := len(pkg); i > 0; i = strings.LastIndexByte(pkg[:i], '/') {
		if _, ok := routers[pkg[:i]]; ok {
			return true
		}
	}
	return false
}

// middlewares reports whether a package is one of a framework's middlewares.
func middlewares(pkg string) bool {
	return strings.Contains(pkg, "/middleware/") || strings.HasSuffix(pkg, "/middleware") || strings.Contains(pkg, "/middlewares/")
}

// Answers reports whether a function is one by which a handler answers, be it of
// echo, fasthttp or net/http.
func Answers(fn string) bool {
	switch receiver := receiverOf(fn); receiver {
	case "github.com/labstack/echo/v4.(*context)", "github.com/labstack/echo/v5.(*Context)", "github.com/valyala/fasthttp.(*RequestCtx)":
		return slices.Contains(answering, strings.TrimPrefix(fn, receiver+"."))
	case "github.com/labstack/echo/v4.(*Response)", "github.com/labstack/echo/v5.(*Response)", "github.com/valyala/fasthttp.(*Response)", "net/http.(*response)":
		return strings.Contains(fn, ").Write") || strings.Contains(fn, ").SetBody")
	}
	return false
}

// Writes reports whether a function is a method of a writer around the answer's.
func Writes(fn string) bool {
	name := fn[strings.LastIndexByte(fn, '.')+1:]
	return slices.Contains([]string{"Write", "WriteString", "WriteHeader", "ReadFrom", "Flush", "Close"}, name)
}

var answering = []string{
	"Render", "HTML", "HTMLBlob", "String", "JSON", "JSONPretty", "JSONBlob", "JSONP", "JSONPBlob",
	"XML", "XMLPretty", "XMLBlob", "Blob", "Stream", "File", "FileFS", "Attachment", "Inline", "NoContent",
	"Redirect", "RedirectBytes", "Success", "SuccessString", "SetBody", "SetBodyString", "SetBodyStream",
	"SetBodyStreamWriter", "SendFile", "SendFileBytes", "Write", "WriteString",
}

// PartOf returns the part that a function belongs to.
func PartOf(fn string) (Part, bool) {
	if o, ok := parts[fn]; ok {
		return o, true
	}
	receiver := receiverOf(fn)
	if o, ok := receivers[receiver]; ok {
		return o, true
	}
	if o, ok := http2Part(receiver); ok {
		return o, true
	}
	if strings.HasPrefix(fn, grpc) && strings.Contains(fn[len(symbol.Package(fn)):], "lient") {
		return Part{Client, "grpc client"}, true
	}
	e, ok := engineOf(symbol.Package(fn))
	return Part{Engine, e}, ok
}

// grpc is how functions of gRPC for Go begin.
const grpc = "google.golang.org/grpc"

// Kratos is how packages of kratos begin.
const Kratos = "github.com/go-kratos/kratos/"

// KratosRPC is the package of kratos that calls middlewares as an interceptor of gRPC.
const KratosRPC = "github.com/go-kratos/kratos/v2/transport/grpc"

// CallsRPC reports whether a function hands a call of gRPC on: the server's own, and
// what is generated for a method of a service. What they call is an interceptor, or
// the method.
func CallsRPC(fn string) bool {
	if GeneratedRPC(fn) {
		return true
	}
	if symbol.Package(fn) != grpc {
		return false
	}
	return slices.ContainsFunc([]string{
		").processRPC", ").processUnaryRPC", ").processStreamingRPC",
		".chainUnaryInterceptors", ".getChainUnaryHandler", ".chainStreamInterceptors", ".getChainStreamHandler",
	}, func(part string) bool { return strings.Contains(fn, part) })
}

// GeneratedRPC reports whether a function, such as _Greeter_SayHello_Handler, was
// generated for a method of a service, or is a literal in one that was.
func GeneratedRPC(fn string) bool {
	_, ok := RPC(fn)
	return ok
}

// RPC returns the service and the method for which a generator, gRPC's or kratos's, made
// a function, as Greeter_SayHello of _Greeter_SayHello_Handler and of literals in it, into
// whatever that was inlined; false if it made none such.
func RPC(fn string) (method string, ok bool) {
	for element := range strings.SplitSeq(fn[len(symbol.Package(fn)):], ".") {
		if name, made := strings.CutPrefix(element, "_"); made {
			if method, ok = strings.CutSuffix(name, "_Handler"); ok {
				return method, true
			}
		}
	}
	return "", false
}

// parts are functions of net/http by which the work of the server is distinguished.
var parts = map[string]Part{
	"net/http.(*conn).readRequest":               {Engine, "net/http: read and parse"},
	"net/http.(*response).finishRequest":         {Engine, "net/http: finish answer"},
	"net/http.(*connReader).backgroundRead":      {Engine, "net/http: background read"},
	"net/http.(*connReader).startBackgroundRead": {Engine, "net/http: background read"},

	"net/http.http2transportResponseBody.Read":           {Client, "net/http client"},
	"net/http/internal/http2.transportResponseBody.Read": {Client, "net/http client"},
	"golang.org/x/net/http2.transportResponseBody.Read":  {Client, "net/http client"},
}

// receivers are types of net/http whose methods are a part of the server, or are
// the client. The body of an answer that the client reads is the same type as that
// of a request, inside one of the client's.
var receivers = map[string]Part{
	"net/http.(*response)":      {Engine, "net/http: write answer"},
	"net/http.(*chunkWriter)":   {Engine, "net/http: write answer"},
	"net/http.(*body)":          {Engine, "net/http: read body"},
	"net/http.(*ServeMux)":      {Router, "http.ServeMux"},
	"net/http.(*Client)":        {Client, "net/http client"},
	"net/http.(*Transport)":     {Client, "net/http client"},
	"net/http.(*persistConn)":   {Client, "net/http client"},
	"net/http.(*bodyEOFSignal)": {Client, "net/http client"},
	"net/http.(*gzipReader)":    {Client, "net/http client"},
}

// http2Part tells the types of HTTP/2 apart, those that net/http has its own copy
// of, those that Go 1.27 moved, and those of golang.org/x/net.
func http2Part(receiver string) (Part, bool) {
	var kind string
	var ok bool
	for _, prefix := range []string{"net/http.(*http2", "net/http/internal/http2.(*", "golang.org/x/net/http2.(*"} {
		if kind, ok = strings.CutPrefix(receiver, prefix); ok {
			break
		}
	}
	switch {
	case !ok:
		return Part{}, false
	case strings.Contains(kind, "lient") || strings.HasPrefix(strings.ToLower(kind), "transport"):
		return Part{Client, "net/http client"}, true
	case strings.HasPrefix(kind, "responseWriter"):
		return receivers["net/http.(*response)"], true
	case strings.HasPrefix(kind, "requestBody"):
		return receivers["net/http.(*body)"], true
	}
	return Part{Engine, "net/http: HTTP/2"}, true
}

// receiverOf returns what stands before a method's name.
func receiverOf(fn string) string {
	end := strings.IndexByte(fn, ')')
	return fn[:end+1]
}
