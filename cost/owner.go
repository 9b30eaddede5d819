package cost

import (
	"path"
	"strconv"
	"strings"
)

// Kind is what an owner is to a request.
type Kind int

// Kinds of owners, in the order in which a request meets them; the last two
// have no place in a request.
const (
	Engine Kind = iota
	Router
	Middleware
	Handler
	Client // calls to other services
	Runtime
	Other
)

var kindNames = [...]string{"engine", "router", "middleware", "handler", "client", "runtime", "other"}

func (k Kind) String() string { return kindNames[k] }

// Owner is what a cost is attributed to. Owners are equal if they are the same
// function of the same file.
type Owner struct {
	Kind Kind
	Name string // for people: package and function, or the part of the engine
	File string // of its function; "" for parts of the engine and the runtime
	Decl int    // line on which the function begins
}

// Where returns file:line, shortened to the file's last two elements; "" if it
// is not known.
func (o Owner) Where() string {
	if o.File == "" {
		return ""
	}
	short := path.Join(path.Base(path.Dir(o.File)), path.Base(o.File))
	if o.Decl == 0 {
		return short
	}
	return short + ":" + strconv.Itoa(o.Decl)
}

// charge is what one stack comes to: its owner, where on the stack that stands,
// and the owners around it, outermost first.
type charge struct {
	owner  Owner
	at     int // index of the owner's frame; len(frames) if it has none
	around []Owner
}

// chargeOf finds the innermost owner of a stack. A stack's middlewares and
// handler are told apart later, by whether anything is ever called by them.
func chargeOf(frames []Frame) charge {
	c := charge{at: len(frames)}
	for i := range frames {
		o, ok := owned(frames, i)
		if !ok {
			continue
		}
		if c.at == len(frames) {
			c.at, c.owner = i, o
			continue
		}
		c.around = append(c.around, o)
	}
	for i, j := 0, len(c.around)-1; i < j; i, j = i+1, j-1 {
		c.around[i], c.around[j] = c.around[j], c.around[i]
	}
	if part, i, ok := partOf(frames[:c.at]); ok {
		if c.at < len(frames) {
			c.around = append(c.around, c.owner)
		}
		c.owner, c.at = part, i
	} else if c.at == len(frames) {
		c.owner = rootOf(frames)
	}
	return c
}

// Charge returns to whom and to what cause a stack is charged. A middleware is
// not told from a handler by one stack: both are of the kind Handler.
func Charge(frames []Frame) (Owner, Cause) {
	c := chargeOf(frames)
	return c.owner, causeOf(frames[:c.at])
}

// owned reports whether frame i is where an owner begins.
func owned(frames []Frame, i int) (Owner, bool) {
	f := frames[i]
	pkg := packageOf(f.Func)
	if r, ok := routers[pkg]; ok && (i+1 == len(frames) || packageOf(frames[i+1].Func) != pkg) {
		return Owner{Kind: Router, Name: r}, true
	}
	if standard(pkg) || known(pkg) {
		return Owner{}, false
	}
	if !strings.HasSuffix(f.Func, ".ServeHTTP") && !(i+1 < len(frames) && handsOn(frames, i)) {
		return Owner{}, false
	}
	return Owner{Kind: Handler, Name: ownerName(f), File: f.File, Decl: f.Decl}, true
}

// handsOn reports whether the caller of frame i hands a request on to the next
// of a chain.
func handsOn(frames []Frame, i int) bool {
	caller := frames[i+1]
	if dispatchers[caller.Func] {
		return true
	}
	pkg := packageOf(caller.Func)
	if known(pkg) {
		return true
	}
	return directChains(frames[i+1:]) && isClosure(frames[i].Func) && !within(frames[i].Func, caller.Func) && !standard(pkg)
}

// dispatchers hand a request to a handler that they do not know.
var dispatchers = map[string]bool{
	"net/http.HandlerFunc.ServeHTTP":   true,
	"net/http.serverHandler.ServeHTTP": true,
	"net/http.(*ServeMux).ServeHTTP":   true,
}

// routers are packages whose frames are a router's, with its name.
var routers = map[string]string{
	"github.com/go-chi/chi/v5":                 "chi",
	"github.com/go-chi/chi":                    "chi",
	"github.com/gin-gonic/gin":                 "gin",
	"github.com/labstack/echo/v4":              "echo",
	"github.com/labstack/echo/v5":              "echo",
	"github.com/gofiber/fiber/v2":              "fiber",
	"github.com/gofiber/fiber/v3":              "fiber",
	"github.com/gorilla/mux":                   "gorilla/mux",
	"github.com/julienschmidt/httprouter":      "httprouter",
	"github.com/uptrace/bunrouter":             "bunrouter",
	"github.com/tarehq/tare/serve/router":      "serve/router",
	"github.com/fasthttp/router":               "fasthttp/router",
	"github.com/cloudwego/hertz/pkg/app":       "hertz",
	"github.com/cloudwego/hertz/pkg/route":     "hertz",
	"github.com/go-kratos/kratos/v2/transport": "kratos",
}

// engines are packages that read requests and write answers.
var engines = map[string]string{
	"github.com/valyala/fasthttp":                          "fasthttp",
	"github.com/valyala/fasthttp/fasthttputil":             "fasthttp",
	"github.com/tarehq/tare/serve":                         "serve",
	"github.com/tarehq/tare/serve/internal/http1":          "serve",
	"github.com/tarehq/tare/serve/internal/sys":            "serve",
	"github.com/cloudwego/hertz/pkg/app/server":            "hertz",
	"github.com/cloudwego/hertz/pkg/protocol/http1":        "hertz",
	"github.com/cloudwego/hertz/pkg/network/netpoll":       "hertz",
	"github.com/cloudwego/hertz/pkg/network/standard":      "hertz",
	"github.com/cloudwego/netpoll":                         "netpoll",
	"github.com/tarehq/tare/arms/arm":                      "arm",
	"github.com/tarehq/tare/serve/chain":                   "serve/chain",
	"github.com/cloudwego/hertz/pkg/protocol":              "hertz",
	"github.com/cloudwego/hertz/pkg/protocol/http1/resp":   "hertz",
	"github.com/cloudwego/hertz/pkg/protocol/http1/req":    "hertz",
	"github.com/cloudwego/hertz/pkg/protocol/http1/ext":    "hertz",
	"github.com/cloudwego/hertz/internal/bytesconv":        "hertz",
	"github.com/cloudwego/hertz/internal/bytestr":          "hertz",
	"github.com/cloudwego/hertz/pkg/common/utils":          "hertz",
	"github.com/cloudwego/hertz/pkg/common/bytebufferpool": "hertz",
}

// known reports whether pkg belongs to a framework or engine, whose own frames
// are never a user's middleware.
func known(pkg string) bool {
	if _, ok := routers[pkg]; ok {
		return true
	}
	_, ok := engines[pkg]
	return ok
}

// directChains reports whether the framework below calls the next of a chain as
// an ordinary function value, without a frame of its own between.
func directChains(frames []Frame) bool {
	for _, f := range frames {
		switch packageOf(f.Func) {
		case "github.com/labstack/echo/v4", "github.com/labstack/echo/v5", "github.com/valyala/fasthttp":
			return true
		}
	}
	return false
}

// isClosure reports whether a function is a function literal.
func isClosure(fn string) bool { return strings.Contains(fn, ".func") || strings.HasSuffix(fn, "-fm") }

// within reports whether inner is a function literal inside outer.
func within(inner, outer string) bool { return strings.HasPrefix(inner, outer+".") }

// packageOf returns the import path of a function's package.
func packageOf(fn string) string {
	slash := strings.LastIndexByte(fn, '/')
	dot := strings.IndexByte(fn[slash+1:], '.')
	if dot < 0 {
		return fn
	}
	return strings.ReplaceAll(fn[:slash+1+dot], "%2e", ".")
}

// standard reports whether pkg is the standard library's: no dot in its first
// element. A program's own main package is not.
func standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return pkg != "main" && !strings.Contains(first, ".")
}

// shortName drops the directories of the import path.
func shortName(fn string) string { return fn[strings.LastIndexByte(fn, '/')+1:] }

// ownerName names a function for people. A function literal goes by the function
// that it is written in: what the linker calls it begins with the function that
// its constructor was inlined into, and ends with numbers that shift when
// another literal is added.
func ownerName(f Frame) string {
	name := shortName(f.Func)
	if !isClosure(f.Func) {
		if rest, ok := strings.CutPrefix(name, "main."); ok && f.File != "" {
			return path.Base(path.Dir(f.File)) + "." + rest // many programs have a main
		}
		return name
	}
	elements := strings.Split(strings.TrimSuffix(name, "-fm"), ".")
	for len(elements) > 1 && numbered(elements[len(elements)-1]) {
		elements = elements[:len(elements)-1]
	}
	writer := elements[len(elements)-1]
	if f.File != "" {
		return path.Base(path.Dir(f.File)) + "." + writer
	}
	return elements[0] + "." + writer
}

// numbered reports whether an element of a linker's name stands for a literal:
// a number, or func and a number.
func numbered(element string) bool {
	digits := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(element, "gowrap"), "func"), "0123456789")
	return digits == "" || strings.HasPrefix(digits, "-range")
}

// partOf finds the outermost frame of a part of the engine, router or client
// among the frames inside an owner.
func partOf(frames []Frame) (Owner, int, bool) {
	for i := len(frames) - 1; i >= 0; i-- {
		fn := frames[i].Func
		if o, ok := parts[fn]; ok {
			return o, i, true
		}
		if o, ok := receivers[receiverOf(fn)]; ok {
			return o, i, true
		}
		if e, ok := engines[packageOf(fn)]; ok {
			return Owner{Kind: Engine, Name: e}, i, true
		}
	}
	return Owner{}, 0, false
}

// parts are functions of net/http by which the work of server and client is told
// apart.
var parts = map[string]Owner{
	"net/http.(*conn).readRequest":                {Kind: Engine, Name: "net/http: read and parse"},
	"net/http.(*response).finishRequest":          {Kind: Engine, Name: "net/http: finish answer"},
	"net/http.(*connReader).backgroundRead":       {Kind: Engine, Name: "net/http: background read"},
	"net/http.(*connReader).startBackgroundRead":  {Kind: Engine, Name: "net/http: background read"},
	"net/http.(*Client).do":                       {Kind: Client, Name: "net/http client"},
	"net/http.(*Transport).roundTrip":             {Kind: Client, Name: "net/http client"},
	"net/http.(*persistConn).readLoop":            {Kind: Client, Name: "net/http client"},
	"net/http.(*persistConn).writeLoop":           {Kind: Client, Name: "net/http client"},
	"net/http.(*http2serverConn).serve":           {Kind: Engine, Name: "net/http: HTTP/2"},
	"net/http.(*http2serverConn).readFrames":      {Kind: Engine, Name: "net/http: HTTP/2"},
	"net/http.(*http2serverConn).writeFrameAsync": {Kind: Engine, Name: "net/http: HTTP/2"},
}

// receivers are types of net/http whose methods are a part of the server.
var receivers = map[string]Owner{
	"net/http.(*response)":    {Kind: Engine, Name: "net/http: write answer"},
	"net/http.(*chunkWriter)": {Kind: Engine, Name: "net/http: write answer"},
	"net/http.(*body)":        {Kind: Engine, Name: "net/http: read body"},
	"net/http.(*ServeMux)":    {Kind: Router, Name: "http.ServeMux"},
}

// receiverOf returns what stands before a method's name.
func receiverOf(fn string) string {
	end := strings.IndexByte(fn, ')')
	return fn[:end+1]
}

// rootOf names a stack without an owner by where it began.
func rootOf(frames []Frame) Owner {
	for i := len(frames) - 1; i >= 0; i-- {
		switch fn := frames[i].Func; fn {
		case "net/http.(*ServeMux).ServeHTTP":
			return Owner{Kind: Router, Name: "http.ServeMux"}
		case "net/http.(*conn).serve":
			return Owner{Kind: Engine, Name: "net/http: connection"}
		case "net/http.(*Server).Serve":
			return Owner{Kind: Engine, Name: "net/http: accept"}
		case "runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcMarkDone", "runtime.gcDrain":
			return backgroundGC
		}
	}
	for i := len(frames) - 1; i >= 0; i-- {
		switch fn := frames[i].Func; {
		case fn == "runtime.mcall" || fn == "runtime.mstart" || fn == "runtime.sysmon" || fn == "runtime.schedule" || fn == "runtime.rt0_go":
			return Owner{Kind: Runtime, Name: "scheduler"}
		case fn == "runtime.goexit" || fn == "runtime.main":
		case standard(packageOf(fn)):
			return Owner{Kind: Other, Name: shortName(fn)}
		default:
			return Owner{Kind: Other, Name: shortName(fn), File: frames[i].File, Decl: frames[i].Decl}
		}
	}
	return Owner{Kind: Other, Name: "unknown"}
}

var backgroundGC = Owner{Kind: Runtime, Name: "collector, in the background"}
