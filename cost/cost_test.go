package cost_test

import (
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
)

// stack makes frames from the outermost, as one reads them: "func@file:decl".
func stack(value float64, outermost ...string) cost.Stack {
	s := cost.Stack{Count: value, Value: value}
	for i := len(outermost) - 1; i >= 0; i-- {
		f := cost.Frame{}
		var at string
		f.Func, at, _ = strings.Cut(outermost[i], "@")
		f.File, at, _ = strings.Cut(at, ":")
		fmt.Sscan(at, &f.Decl)
		s.Frames = append(s.Frames, f)
	}
	return s
}

const (
	conn   = "net/http.(*conn).serve"
	server = "net/http.serverHandler.ServeHTTP"
	call   = "net/http.HandlerFunc.ServeHTTP"
	mux    = "net/http.(*ServeMux).ServeHTTP"
	auth   = "main.main.Auth.func3@/src/auth/auth.go:20" // Auth was inlined into main
	trace  = "example.org/mw.Trace.func1@/src/mw/trace.go:7"
	users  = "main.users@/src/main.go:40"
	fast   = "github.com/valyala/fasthttp.(*Server).serveConn"
	echo5  = "github.com/labstack/echo/v5."
	fiber3 = "github.com/gofiber/fiber/v3."
)

// TestWrittenThrough charges what a handler writes through a middleware's writer to the
// middleware, where the writer's file or folder tells which.
func TestWrittenThrough(t *testing.T) {
	const (
		zip    = "main.main.Zip.func2@/src/zip/zip.go:12" // Zip was inlined into main
		beside = "example.org/mw.Beside.func1@/src/mw/trace.go:50"
		log    = "example.org/mw.Log.func1@/src/mw/log.go:5"
		lone   = "main.main.Lone.func4@/src/main.go:9"
		answer = "main.answer@/src/main.go:40"
		other  = "main.other@/src/other.go:3"
	)
	around := []string{"runtime.goexit", conn, server, call}
	for _, tt := range []struct {
		name   string
		inside []string
		want   string
		around string
	}{
		{"the middleware's file", []string{zip, call, answer, "example.org/zip.(*writer).Write@/src/zip/zip.go:30", "compress/flate.(*Writer).Write@f.go:1"}, "zip.Zip", ""},
		{"the middleware's folder", []string{zip, call, answer, "example.org/zip.(*writer).WriteString@/src/zip/writer.go:3"}, "zip.Zip", ""},
		{"no pointer", []string{zip, call, answer, "example.org/zip.writer.Write@/src/zip/writer.go:3"}, "zip.Zip", ""},
		{"the inner of two writers", []string{trace, call, zip, call, answer, "example.org/zip.(*writer).Write@/src/zip/zip.go:30", "example.org/mw.(*recorder).Write@/src/mw/trace.go:30"}, "mw.Trace", ""},
		{"the outer of two writers", []string{trace, call, zip, call, answer, "example.org/zip.(*writer).Write@/src/zip/zip.go:30", "compress/flate.(*Writer).Write@f.go:1"}, "zip.Zip", "mw.Trace"},
		{"one folder, another file than the handler's", []string{lone, call, other, "main.(*recorder).Write@/src/main.go:20"}, "src.Lone", ""},
		{"the engine's writing", []string{zip, call, answer, "example.org/zip.(*writer).Write@/src/zip/zip.go:30", "net/http.(*response).Write@s.go:1"}, "net/http: write answer", "zip.Zip src.answer"},
		{"the handler's file", []string{lone, call, answer, "main.(*recorder).Write@/src/main.go:20"}, "src.answer", "src.Lone"},
		{"the handler's folder", []string{lone, call, other, "main.(*recorder).Write@/src/third.go:20"}, "src.other", "src.Lone"},
		{"a folder of two", []string{trace, call, log, call, answer, "example.org/mw.(*recorder).Write@/src/mw/writer.go:30"}, "src.answer", "mw.Trace mw.Log"},
		{"a file of two", []string{trace, call, beside, call, answer, "example.org/mw.(*recorder).Write@/src/mw/trace.go:30"}, "src.answer", "mw.Trace mw.Beside"},
		{"a file of one that is met twice", []string{trace, call, zip, call, trace, call, answer, "example.org/mw.(*recorder).Write@/src/mw/trace.go:30"}, "mw.Trace", ""},
		{"a file of two, within another's writer", []string{trace, call, beside, call, zip, call, answer, "example.org/zip.(*writer).Write@/src/zip/zip.go:30", "example.org/mw.(*recorder).Write@/src/mw/trace.go:30"}, "zip.Zip", "mw.Trace mw.Beside"},
		{"nobody's folder", []string{zip, call, answer, "example.org/audit.(*journal).Write@/src/audit/audit.go:30"}, "src.answer", "zip.Zip"},
		{"no method", []string{zip, call, answer, "example.org/zip.Write@/src/zip/zip.go:30"}, "src.answer", "zip.Zip"},
		{"no method, a package with a dot", []string{zip, call, answer, "example.org/zip%2ev1.Write@/src/zip/zip.go:30"}, "src.answer", "zip.Zip"},
		{"another method", []string{zip, call, answer, "example.org/zip.(*writer).level@/src/zip/zip.go:30"}, "src.answer", "zip.Zip"},
		{"the middleware itself", []string{zip, "example.org/zip.(*writer).Close@/src/zip/zip.go:30"}, "zip.Zip", ""},
	} {
		s := stack(1, append(slices.Clone(around), tt.inside...)...)
		all := cost.Learn([]cost.Stack{s}).Around(s.Frames)
		var names []string
		for _, o := range all[:len(all)-1] {
			names = append(names, o.Name)
		}
		if owner := all[len(all)-1]; owner.Name != tt.want || strings.Join(names, " ") != tt.around {
			t.Errorf("%s: got %s within %q, want %s within %q", tt.name, owner.Name, names, tt.want, tt.around)
		}
		if owner, _ := cost.Charge(s.Frames); owner != all[len(all)-1] {
			t.Errorf("%s: charged to %s, want %s", tt.name, owner.Name, tt.want)
		}
	}

	table := cost.Table{}
	for _, inside := range [][]string{{zip}, {zip, call, answer}, {zip, call, answer, "example.org/zip.(*writer).Write@/src/zip/zip.go:30"}} {
		s := stack(100, append(slices.Clone(around), inside...)...)
		table.Add(&s)
	}
	for _, r := range table.Rows() {
		switch r.Owner.Name {
		case "zip.Zip":
			if r.Owner.Kind != cost.Middleware || r.Self.Value != 200 || r.Total.Value != 300 {
				t.Errorf("got %+v, want a middleware of 200 by itself, 300 in all", r)
			}
		case "src.answer":
			if r.Owner.Kind != cost.Handler || r.Self.Value != 100 || r.Total.Value != 100 {
				t.Errorf("got %+v, want a handler of 100", r)
			}
		}
	}
}

// TestRequestsMargin has what is not known of the requests in the margin of what each
// owner spends a request, and in nothing that is per second.
func TestRequestsMargin(t *testing.T) {
	seen := []cost.Stack{stack(400, "runtime.goexit", conn, server, call, users)}
	for _, tt := range []struct{ requests, margin, want float64 }{
		{100, 0, 4 * 1.96 / 20},
		{100, 30, math.Hypot(4*1.96/20, 4*0.3)},
		{0, 0, 400 * 1.96 / 20},
	} {
		b := cost.NewBill(seen, nil, cost.Window{Duration: time.Second, Requests: tt.requests, Margin: tt.margin})
		if got := b.Items[0].Margin; math.Abs(got-tt.want) > 1e-9 || b.RequestsMargin != tt.margin {
			t.Errorf("%.0f ± %.0f requests: a margin of %v, want %v", tt.requests, tt.margin, got, tt.want)
		}
	}
	w := cost.Window{Duration: time.Second, Requests: 100, Margin: 30}.Over(2 * time.Second)
	if w.Requests != 200 || w.Margin != 60 {
		t.Errorf("over twice the time: got %+v, want twice as many, and as wide", w)
	}
}

func TestCharge(t *testing.T) {
	chain := []string{"runtime.goexit", conn, server, call, auth, call, trace, mux, call, users}
	in := func(more ...string) []string { return append(append([]string{}, chain...), more...) }
	for _, tc := range []struct {
		name   string
		frames []string
		owner  string
		kind   cost.Kind
		cause  cost.Cause
	}{
		{"handler's own", in(), "src.users", cost.Handler, cost.Own},
		{"what it calls", in("main.compute"), "src.users", cost.Handler, cost.Own},
		{"allocation", in("runtime.newobject", "runtime.mallocgc"), "src.users", cost.Handler, cost.Alloc},
		{"assist", in("runtime.mallocgc", "runtime.gcAssistAlloc", "runtime.gcDrainN"), "src.users", cost.Handler, cost.GC},
		{"json", in("encoding/json.Marshal", "reflect.Value.Field"), "src.users", cost.Handler, cost.JSON},
		{"lock", in("sync.(*Mutex).Lock", "runtime.lock2"), "src.users", cost.Handler, cost.Locks},
		{"answer", in("net/http.(*response).Write", "bufio.(*Writer).Write"), "net/http: write answer", cost.Engine, cost.Own},
		{"client", in("net/http.(*Client).do", "internal/runtime/syscall.Syscall6"), "net/http client", cost.Client, cost.Kernel},
		{"body of an answer that the client reads", in("io.ReadAll", "net/http.(*bodyEOFSignal).Read", "net/http.(*body).Read"), "net/http client", cost.Client, cost.Own},
		{"body of such an answer by HTTP/2", in("io.ReadAll", "net/http.http2transportResponseBody.Read", "net/http.(*http2pipe).Read"), "net/http client", cost.Client, cost.Own},
		{"copied from there", in("io.Copy", "net/http.(*response).ReadFrom", "io.CopyBuffer", "net/http.(*bodyEOFSignal).Read", "net/http.(*body).Read"), "net/http client", cost.Client, cost.Own},
		{"copied from a reader of the handler's", in("io.Copy", "net/http.(*response).ReadFrom", "io.CopyBuffer", "main.(*rows).Read"), "src.users", cost.Handler, cost.Own},
		{"copied to the answer", in("io.Copy", "net/http.(*response).ReadFrom", "io.CopyBuffer", "net/http.(*response).Write"), "net/http: write answer", cost.Engine, cost.Own},
		{"sent from a file", in("io.Copy", "net/http.(*response).ReadFrom", "net.(*TCPConn).ReadFrom", "[kernel] do_sendfile"), "net/http: write answer", cost.Engine, cost.Kernel},
		{"dialling", []string{"runtime.goexit", "net/http.(*Transport).startDialConnForLocked.func1", "net.(*Dialer).DialContext"}, "net/http client", cost.Client, cost.Own},
		{"body of a request", in("io.ReadAll", "net/http.(*body).Read"), "net/http: read body", cost.Engine, cost.Own},
		{"closure named after main", chain[:5], "auth.Auth", cost.Handler, cost.Own},
		{"its callee", append(append([]string{}, chain[:5]...), "main.check"), "auth.Auth", cost.Handler, cost.Own},
		{"inner middleware", chain[:7], "mw.Trace", cost.Handler, cost.Own},
		{"routing", append(append([]string{}, chain[:8]...), "net/http.(*ServeMux).findHandler"), "http.ServeMux", cost.Router, cost.Own},
		{"method", []string{"runtime.goexit", conn, server, "main.(*App).ServeHTTP@/src/app.go:3"}, "src.(*App).ServeHTTP", cost.Handler, cost.Own},
		{"interceptor of connect", in("connectrpc.com/connect.NewUnaryHandler[...].func2", "main.main.first.func3.1@/src/c.go:1", "connectrpc.com/connect.(*chain).WrapUnary.unaryThunk.func1", "main.main.second.func4.1@/src/c.go:9"), "src.second", cost.Handler, cost.Own},
		{"method of connect's simple form that streams", in("connectrpc.com/connect.NewServerStreamHandler[...].func1", "connectrpc.com/connect.NewServerStreamHandlerSimple[...].func1", "main.(*carts).Watch@/src/carts.go:3"), "src.(*carts).Watch", cost.Handler, cost.Own},
		{"interceptor of connect's client", in("connectrpc.com/connect.NewClient[...].func2", "main.main.first.func3.1@/src/c.go:1", "connectrpc.com/connect.(*chain).WrapUnary.unaryThunk.func1", "main.main.second.func4.1@/src/c.go:9"), "src.users", cost.Handler, cost.Own},
		{"middleware of kratos behind gRPC", []string{"google.golang.org/grpc.(*Server).processUnaryRPC", "main._Cart_Add_Handler", "github.com/go-kratos/kratos/v2/transport/grpc.(*Server).unaryServerInterceptor.func1", "main.main.Auth.func2.1@/src/mw.go:3"}, "src.Auth", cost.Handler, cost.Own},
		{"inside another", []string{"google.golang.org/grpc.(*Server).processUnaryRPC", "main._Cart_Add_Handler", "github.com/go-kratos/kratos/v2/transport/grpc.(*Server).unaryServerInterceptor.func1", "main.main.Auth.func2.1@/src/mw.go:3", "main.main.Trace.func3.1@/src/mw.go:9"}, "src.Trace", cost.Handler, cost.Own},
		{"what kratos calls itself", []string{"google.golang.org/grpc.(*Server).processUnaryRPC", "main._Cart_Add_Handler", "github.com/go-kratos/kratos/v2/transport/grpc.(*Server).unaryServerInterceptor.func1", "github.com/go-kratos/kratos/v2/internal/context.Merge@context/context.go:23"}, "kratos", cost.Router, cost.Own},
		{"module without a dot", in("shop/mw.(*logger).ServeHTTP@/shop/mw/mw.go:7", "memeqbody"), "mw.(*logger).ServeHTTP", cost.Handler, cost.Own},
		{"parsing", []string{"runtime.goexit", conn, "net/http.(*conn).readRequest", "net/textproto.(*Reader).ReadMIMEHeader"}, "net/http: read and parse", cost.Engine, cost.Own},
		{"finishing", []string{"runtime.goexit", conn, "net/http.(*response).finishRequest", "internal/runtime/syscall.Syscall6"}, "net/http: finish answer", cost.Engine, cost.Kernel},
		{"connection", []string{"runtime.goexit", conn, "bufio.(*Reader).Peek"}, "net/http: connection", cost.Engine, cost.Own},
		{"background GC", []string{"runtime.goexit", "runtime.gcBgMarkWorker", "runtime.gcDrain"}, "collector, in the background", cost.Runtime, cost.GC},
		{"scheduler", []string{"runtime.mcall", "runtime.park_m", "runtime.schedule"}, "scheduler", cost.Runtime, cost.Scheduling},
		{"system monitor", []string{"runtime.mstart", "runtime.mstart1", "runtime.sysmon", "runtime.usleep"}, "system monitor", cost.Runtime, cost.Kernel},
		{"system monitor, as the kernel's clock saw it", []string{cost.SystemMonitor}, "system monitor", cost.Runtime, cost.Scheduling},
		{"where a goroutine begins", []string{"runtime.goexit"}, "runtime, without a caller", cost.Runtime, cost.Own},
		{"other goroutine", []string{"runtime.goexit", "main.tick@/src/tick.go:9", "time.Now"}, "main.tick", cost.Other, cost.Clock},
		{"gin", []string{"runtime.goexit", conn, server, "github.com/gin-gonic/gin.(*Engine).ServeHTTP", "github.com/gin-gonic/gin.(*Context).Next", "main.Log.func1@/src/log.go:5", "github.com/gin-gonic/gin.(*Context).Next", users}, "src.users", cost.Handler, cost.Own},
		{"gin's own", []string{"runtime.goexit", conn, server, "github.com/gin-gonic/gin.(*Engine).ServeHTTP", "github.com/gin-gonic/gin.(*node).getValue"}, "gin", cost.Router, cost.Own},
		{"echo", []string{"runtime.goexit", conn, server, "github.com/labstack/echo/v4.(*Echo).ServeHTTP", "main.Log.func1.1@/src/log.go:5", "main.Auth.func2.1@/src/auth.go:6"}, "src.Auth", cost.Handler, cost.Own},
		{"echo, a closure of its own", []string{"runtime.goexit", conn, server, "github.com/labstack/echo/v4.(*Echo).ServeHTTP", "main.Log.func1.1@/src/log.go:5", "main.Log.func1.1.2@/src/log.go:8"}, "src.Log", cost.Handler, cost.Own},
		{"echo, a closure of its own by way of another package", []string{"runtime.goexit", conn, server, "github.com/labstack/echo/v4.(*Echo).ServeHTTP", "main.Log.func1.1@/src/log.go:5", "example.org/template.Execute", "main.Log.func1.1.2@/src/log.go:8"}, "src.Log", cost.Handler, cost.Own},
		{"echo 5, the first middleware", []string{"runtime.goexit", conn, server, echo5 + "(*Echo).ServeHTTP", echo5 + "(*Echo).serveHTTP", "main.Log.func1.1@/src/log.go:5"}, "src.Log", cost.Handler, cost.Own},
		{"echo 5, the first, of its own", []string{"runtime.goexit", conn, server, echo5 + "(*Echo).ServeHTTP", echo5 + "(*Echo).serveHTTP", "github.com/labstack/echo/v5/middleware.RecoverConfig.ToMiddleware.func1.1@/m/echo/v5@v5.3.1/middleware/recover.go:5"}, "middleware.ToMiddleware", cost.Handler, cost.Own},
		{"echo 5, a handler", []string{"runtime.goexit", conn, server, echo5 + "(*Echo).ServeHTTP", echo5 + "(*Echo).serveHTTP", echo5 + "(*Echo).buildRouterChains.func1", users}, "src.users", cost.Handler, cost.Own},
		{"echo 5, a handler behind a middleware", []string{"runtime.goexit", conn, server, echo5 + "(*Echo).ServeHTTP", echo5 + "(*Echo).serveHTTP", "main.Log.func1.1@/src/log.go:5", echo5 + "(*Echo).buildRouterChains.func1", users}, "src.users", cost.Handler, cost.Own},
		{"echo 5, routing", []string{"runtime.goexit", conn, server, echo5 + "(*Echo).ServeHTTP", echo5 + "(*Echo).serveHTTP", echo5 + "(*DefaultRouter).Route"}, "echo", cost.Router, cost.Own},
		{"fiber 3, a handler as express has them", []string{"runtime.goexit", fast, fiber3 + "(*App).requestHandler", fiber3 + "(*App).next", fiber3 + "adaptExpressHandler.func1", users}, "src.users", cost.Handler, cost.Own},
		{"fiber 3, such a handler behind a middleware", []string{"runtime.goexit", fast, fiber3 + "(*App).requestHandler", fiber3 + "(*App).next", "main.Log.func1@/src/log.go:5", fiber3 + "(*DefaultCtx).Next", fiber3 + "adaptExpressHandler.func1@/m/fiber/v3@v3.1.0/adapter.go:63", users}, "src.users", cost.Handler, cost.Own},
		{"fiber 3, what such a middleware calls", []string{"runtime.goexit", fast, fiber3 + "(*App).requestHandler", fiber3 + "(*App).next", fiber3 + "adaptExpressHandler.func3", "main.Log@/src/log.go:5", fiber3 + "adaptExpressHandler.func3.1", fiber3 + "(*DefaultCtx).Next", users}, "src.users", cost.Handler, cost.Own},
		{"a function as a handler", []string{"runtime.goexit", conn, server, "example.org/negro/v3.HandlerFunc.ServeHTTP@/m/negro/v3@v3.1.0/n.go:3", users}, "src.users", cost.Handler, cost.Own},
		{"method of a package with a version", []string{"runtime.goexit", conn, server, "example.org/negro/v3.(*Log).ServeHTTP@/m/negro/v3@v3.1.0/n.go:3"}, "negro.(*Log).ServeHTTP", cost.Handler, cost.Own},
		{"echo, what a middleware was configured with", []string{"runtime.goexit", conn, server, "github.com/labstack/echo/v4.(*Echo).ServeHTTP", "main.Log.func1.1@/src/log.go:5", "main.newKey.func1@/src/key.go:8"}, "src.Log", cost.Handler, cost.Own},
		{"gin, encoding for a handler", []string{"runtime.goexit", conn, server, "github.com/gin-gonic/gin.(*Engine).ServeHTTP", "github.com/gin-gonic/gin.(*Context).Next", users, "github.com/gin-gonic/gin.(*Context).JSON", "github.com/gin-gonic/gin/render.JSON.Render", "encoding/json.Marshal"}, "src.users", cost.Handler, cost.JSON},
		{"gin's own middleware", []string{"runtime.goexit", conn, server, "github.com/gin-gonic/gin.(*Engine).ServeHTTP", "github.com/gin-gonic/gin.(*Context).Next", "github.com/gin-gonic/gin.LoggerWithConfig.func1@/m/gin@v1.12.0/logger.go:5"}, "gin.LoggerWithConfig", cost.Handler, cost.Own},
		{"what calls on from there", []string{"runtime.goexit", conn, server, "github.com/gin-gonic/gin.(*Engine).ServeHTTP", "github.com/gin-gonic/gin.(*Context).Next", "github.com/gin-gonic/gin.LoggerWithConfig.func1@/m/gin@v1.12.0/logger.go:5", "github.com/gin-gonic/gin.(*Context).Next"}, "gin", cost.Router, cost.Own},
		{"fasthttp", []string{"runtime.goexit", "github.com/valyala/fasthttp.(*Server).serveConnCounted", "main.Log.func1@/src/log.go:5", "main.Auth.func2@/src/auth.go:6"}, "src.Auth", cost.Handler, cost.Own},
		{"built by a file's name, trimmed", []string{"runtime.goexit", "github.com/valyala/fasthttp.(*Server).serveConnCounted", "main.Log.func1@./log.go:5", "main.Auth.func2@./log.go:6"}, "main.Auth", cost.Handler, cost.Own},
		{"HTTP/2", []string{"runtime.goexit", "net/http.(*http2serverConn).runHandler"}, "net/http: HTTP/2", cost.Engine, cost.Own},
		{"answering by HTTP/2", []string{"runtime.goexit", "net/http.(*http2serverConn).runHandler", server, call, users, "net/http.(*http2responseWriter).Write"}, "net/http: write answer", cost.Engine, cost.Own},
		{"body of a request by HTTP/2", in("io.ReadAll", "net/http.(*http2requestBody).Read"), "net/http: read body", cost.Engine, cost.Own},
		{"asking by HTTP/2", in("net/http.(*http2Transport).RoundTrip", "net/http.(*http2clientStream).writeRequest"), "net/http client", cost.Client, cost.Own},
		{"asking by that of golang.org/x/net", in("golang.org/x/net/http2.(*Transport).RoundTrip"), "net/http client", cost.Client, cost.Own},
		{"reading answers by HTTP/2", []string{"runtime.goexit", "net/http.(*http2clientConnReadLoop).run"}, "net/http client", cost.Client, cost.Own},
		{"chi", []string{"runtime.goexit", conn, server, "github.com/go-chi/chi/v5.(*Mux).ServeHTTP", call, "github.com/go-chi/chi/v5.(*Mux).routeHTTP", "github.com/go-chi/chi/v5.(*node).FindRoute"}, "chi", cost.Router, cost.Own},
		{"nothing", nil, "unknown", cost.Other, cost.Own},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := stack(1, tc.frames...)
			owner, cause := cost.Charge(s.Frames)
			if owner.Name != tc.owner || owner.Kind != tc.kind || cause != tc.cause {
				t.Errorf("charged to %s %q for %s, want %s %q for %s", owner.Kind, owner.Name, cause, tc.kind, tc.owner, tc.cause)
			}
		})
	}
}

// TestLearn checks that a handler behind middlewares that call it as they would
// any function is known once it was seen to answer, on any stack.
func TestLearn(t *testing.T) {
	behind := func(more ...string) []string {
		return append([]string{"runtime.goexit", conn, server, "github.com/labstack/echo/v4.(*Echo).ServeHTTP", "main.Log.func1.1@/src/log.go:5"}, more...)
	}
	const api = "main.(*API).Users@/src/api/api.go:9"
	stacks := []cost.Stack{
		stack(1, behind(api, "main.query")...),
		stack(1, behind("main.check@/src/check.go:3")...),
		stack(1, behind("main.(*gz).Close@/src/gz.go:3", "net/http.(*response).Write")...),
	}
	answering := stack(1, behind(api, "main.respond", "github.com/labstack/echo/v4.(*context).JSON", "encoding/json.Marshal")...)
	for _, tc := range []struct {
		name  string
		rules *cost.Rules
		want  []string
	}{
		{"not seen to answer", cost.Learn(stacks), []string{"src.Log", "src.Log", "net/http: write answer"}},
		{"seen to answer", cost.Learn(stacks, []cost.Stack{answering}), []string{"api.(*API).Users", "src.Log", "net/http: write answer"}},
	} {
		for i, want := range tc.want {
			if owner, _ := tc.rules.Charge(stacks[i].Frames); owner.Name != want {
				t.Errorf("%s: stack %d is charged to %q, want %q", tc.name, i, owner.Name, want)
			}
		}
	}
}

// TestTable checks that every value is in exactly one row, that a row's causes
// add up to its own cost, and that middlewares are told from handlers.
func TestTable(t *testing.T) {
	var table cost.Table
	base := []string{"runtime.goexit", conn, server, call, auth, call, trace, mux, call, users}
	for _, s := range []cost.Stack{
		stack(3, base...),
		stack(5, append(base, "runtime.mallocgc")...),
		stack(7, base[:5]...),
		stack(11, base[:7]...),
		stack(13, "runtime.goexit", conn, "net/http.(*conn).readRequest"),
		stack(17, "runtime.goexit", "runtime.gcBgMarkWorker"),
	} {
		table.Add(&s)
	}
	var sum float64
	got := map[string]string{}
	for _, r := range table.Rows() {
		sum += r.Self.Value
		var causes float64
		for _, a := range r.By() {
			causes += a.Value
		}
		if causes != r.Self.Value {
			t.Errorf("%s: causes come to %g, want its own cost %g", r.Owner.Name, causes, r.Self.Value)
		}
		got[r.Owner.Name] = fmt.Sprint(r.Owner.Kind, " ", r.Self.Value, " ", r.Total.Value)
	}
	if sum != table.Sum().Value || sum != 56 {
		t.Errorf("rows come to %g, sum is %g, want 56", sum, table.Sum().Value)
	}
	for name, want := range map[string]string{
		"auth.Auth":                    "middleware 7 26",
		"mw.Trace":                     "middleware 11 19",
		"src.users":                    "handler 8 8",
		"net/http: read and parse":     "engine 13 13",
		"collector, in the background": "runtime 17 17",
	} {
		if got[name] != want {
			t.Errorf("%s: kind, self, total = %s, want %s", name, got[name], want)
		}
	}
}

func TestShareGC(t *testing.T) {
	var cpu, bytes cost.Table
	gc := stack(30, "runtime.goexit", "runtime.gcBgMarkWorker")
	cpu.Add(&gc)
	for _, s := range []cost.Stack{
		stack(100, "runtime.goexit", conn, server, call, auth, "runtime.mallocgc"),
		stack(200, "runtime.goexit", conn, server, call, users, "runtime.mallocgc"),
	} {
		bytes.Add(&s)
	}
	got := map[string]float64{}
	for o, v := range cpu.ShareGC(&bytes) {
		got[o.Name] = v
	}
	if got["auth.Auth"] != 10 || got["src.users"] != 20 || len(got) != 2 {
		t.Errorf("shares of 30 by 100 and 200 bytes: %v, want 10 and 20", got)
	}
}

func TestMargin(t *testing.T) {
	for _, tc := range []struct{ count, value, want float64 }{
		{0, 0, 0},
		{1, 10, 19.6},
		{100, 1000, 196},
	} {
		if got := (cost.Amount{Count: tc.count, Value: tc.value}).Margin(); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("margin of %g seen %g times: %g, want %g", tc.value, tc.count, got, tc.want)
		}
	}
}

func ExampleTable() {
	var table cost.Table
	s := stack(1200, "runtime.goexit", conn, server, call, auth, "runtime.mallocgc")
	table.Add(&s)
	for _, r := range table.Rows() {
		for cause, a := range r.By() {
			fmt.Println(r.Owner.Name, r.Owner.Where(), cause, a.Value)
		}
	}
	// Output: auth.Auth auth/auth.go:20 alloc 1200
}

// TestBill checks that a bill adds up, divides by what there is to divide by, and
// leaves out nobody who allocates but was never seen to run.
func TestBill(t *testing.T) {
	cpu := []cost.Stack{
		stack(600, "runtime.goexit", conn, server, call, auth, call, users),
		stack(300, "runtime.goexit", conn, server, call, auth),
		stack(100, "runtime.goexit", "runtime.gcBgMarkWorker"),
	}
	allocs := []cost.Stack{
		stack(3000, "runtime.goexit", conn, server, call, auth, "runtime.mallocgc"),
		stack(1000, "runtime.goexit", conn, "net/http.(*conn).readRequest", "runtime.mallocgc"),
	}
	allocs[0].Count, allocs[1].Count = 6, 4
	for _, tc := range []struct {
		w   cost.Window
		by  float64
		per string
	}{
		{cost.Window{Duration: 2 * time.Second, Requests: 10}, 10, "request"},
		{cost.Window{Duration: 2 * time.Second}, 2, "second"},
		{cost.Window{}, 1, "profile"},
	} {
		b := cost.NewBill(cpu, allocs, tc.w)
		var self, bytes, objects, gc, causes float64
		owners := map[string]cost.Item{}
		for _, it := range b.Items {
			self, bytes, objects, gc = self+it.Self, bytes+it.Bytes, objects+it.Objects, gc+it.GC
			owners[it.Owner] = it
			for _, c := range it.Causes {
				causes += c.Value
			}
		}
		if b.Per != tc.per || b.CPU != 1000/tc.by || self != b.CPU || b.Bytes != 4000/tc.by || bytes != b.Bytes || gc != 100/tc.by {
			t.Errorf("window %+v: per %s, CPU %g, selves %g, bytes %g, items' %g, shares of the collector %g", tc.w, b.Per, b.CPU, self, b.Bytes, bytes, gc)
		}
		if b.Objects != 10/tc.by || objects != b.Objects || math.Abs(causes-self) > 1e-9 {
			t.Errorf("window %+v: objects %g, items' %g, want both %g; causes %g of %g", tc.w, b.Objects, objects, 10/tc.by, causes, self)
		}
		if it := owners["auth.Auth"]; it.Kind != "middleware" || it.Self != 300/tc.by || it.Total != 900/tc.by || it.Bytes != 3000/tc.by || it.Objects != 6/tc.by || it.GC != 75/tc.by {
			t.Errorf("window %+v: auth.Auth is %+v", tc.w, it)
		}
		if it := owners["net/http: read and parse"]; it.Bytes != 1000/tc.by || it.Self != 0 {
			t.Errorf("window %+v: what allocates and was never seen to run is %+v", tc.w, it)
		}
	}
}

// TestStandard holds what is taken for the standard library against the toolchain's
// own list: code of another package would be charged to its caller, or the reverse.
func TestStandard(t *testing.T) {
	out, err := exec.Command("go", "list", "std").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range append(strings.Fields(string(out)), "[kernel]", "type:") {
		if f := (cost.Frame{Func: pkg + ".F"}); !f.Standard() {
			t.Errorf("%s is not taken for the standard library", f.Func)
		}
	}
	for _, fn := range []string{"main.main", "shop/net.F", "example.org/net.F", "netx.F"} {
		if (cost.Frame{Func: fn}).Standard() {
			t.Errorf("%s is taken for the standard library", fn)
		}
	}
}

// TestBillAgrees has a middleware that was seen to call a handler by its allocations
// alone.
func TestBillAgrees(t *testing.T) {
	cpu := []cost.Stack{stack(300, "runtime.goexit", conn, server, call, auth)}
	allocs := []cost.Stack{stack(64, "runtime.goexit", conn, server, call, auth, call, users, "runtime.mallocgc")}
	if it := cost.NewBill(cpu, allocs, cost.Window{}).Items[0]; it.Owner != "auth.Auth" || it.Kind != "middleware" {
		t.Errorf("got %s %s, want the middleware auth.Auth", it.Kind, it.Owner)
	}
}

// TestAddWaits divides waits by the requests of their own window, and leaves out
// those of connections between requests.
func TestAddWaits(t *testing.T) {
	b := cost.NewBill([]cost.Stack{stack(600, "runtime.goexit", conn, server, call, auth, call, users)}, nil, cost.Window{Duration: time.Second, Requests: 10})
	b.AddWaits([]cost.Wait{
		{Stack: stack(4000, "runtime.goexit", conn, server, call, auth, call, users, "runtime.gopark"), Reason: cost.Sleep},
		{Stack: stack(8000, "runtime.goexit", conn, server, call, auth, call, users, "runtime.gopark"), Reason: cost.Lock},
		{Stack: stack(400, "runtime.goexit", conn, server, call, auth, "runtime.gopark"), Reason: cost.Channel},
		{Stack: stack(90_000, "runtime.goexit", conn, "runtime.gopark"), Reason: cost.Network},
	}, cost.Window{Duration: 2 * time.Second, Requests: 20})
	if b.Waited != 2 || len(b.Items) != 2 {
		t.Fatalf("waits of %g s, %d items, want 2 and 2", b.Waited, len(b.Items))
	}
	for i, want := range []cost.Item{
		{Owner: "src.users", Self: 60, Wait: 600, Waits: []cost.WaitShare{{Reason: "lock", Value: 400}, {Reason: "sleep", Value: 200}}},
		{Owner: "auth.Auth", Wait: 20, Waits: []cost.WaitShare{{Reason: "channel", Value: 20}}},
	} {
		if it := b.Items[i]; it.Owner != want.Owner || it.Self != want.Self || it.Wait != want.Wait || !slices.Equal(it.Waits, want.Waits) {
			t.Errorf("item %d: got %+v, want %+v", i, it, want)
		}
	}
}

func TestWeighty(t *testing.T) {
	cpu := []cost.Stack{
		stack(998, "runtime.goexit", conn, server, call, users),
		stack(2, "runtime.goexit", "runtime.gcBgMarkWorker"),
	}
	items, others, rest := cost.NewBill(cpu, nil, cost.Window{}).Weighty()
	if len(items) != 1 || others != 1 || rest != 2 {
		t.Errorf("%d items, %d others with %g, want 1, 1 with 2", len(items), others, rest)
	}
}

func TestAround(t *testing.T) {
	for _, tc := range []struct {
		frames []string // outermost first
		want   string
	}{
		{[]string{"runtime.goexit", conn, server, call, auth, call, users, "runtime.mallocgc"}, "auth.Auth src.users"},
		{[]string{"runtime.goexit", conn, server, call, auth, "net/http.(*response).Write"}, "auth.Auth net/http: write answer"},
		{[]string{"runtime.goexit", conn}, "net/http: connection"},
	} {
		s := stack(1, tc.frames...)
		var got []string
		for _, o := range cost.Learn([]cost.Stack{s}).Around(s.Frames) {
			got = append(got, o.Name)
		}
		if joined := strings.Join(got, " "); joined != tc.want {
			t.Errorf("owners on %q are %q, want %q", tc.frames, joined, tc.want)
		}
	}
}
