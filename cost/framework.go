package cost

import (
	"slices"
	"strings"

	"github.com/tarehq/tare/cost/internal/framework"
	"github.com/tarehq/tare/cost/internal/symbol"
)

// directChains reports whether the framework that the frames are nearest to, of
// which the first is the innermost, calls the next of a chain as an ordinary
// function value, without a frame of its own between.
func directChains(frames []Frame) bool { return chainOf(frames) != "" }

// chainOf returns the package of that framework, "" if it is none such.
func chainOf(frames []Frame) string {
	for _, f := range frames {
		pkg := symbol.Package(f.Func)
		if framework.CallsDirectly(pkg) {
			return pkg
		}
		if _, ok := framework.RouterOf(pkg); ok || framework.Dispatches(f.Func) {
			break
		}
	}
	return ""
}

// chained reports whether a function looks like the next of such a chain: it is a
// literal, and not of a function on the stack, which is more likely to have given
// it to what calls it. With echo and kratos, whose middlewares are literals within
// literals, it is one of those: others are more often what a middleware was configured
// with.
func chained(fn string, around []Frame) bool {
	if !symbol.IsClosure(fn) || slices.ContainsFunc(around, func(f Frame) bool { return symbol.Within(fn, f.Func) }) {
		return false
	}
	if chain := chainOf(around); !strings.HasPrefix(chain, "github.com/labstack/echo/") && !strings.HasPrefix(chain, framework.Kratos) {
		return true
	}
	return symbol.Nested(fn)
}

// partOf finds the outermost frame of a part of the engine, router or client
// among the frames inside an owner. An answer that fills itself from a reader is
// the engine's work but for the reading: that is the client's, or the owner's if it
// has code of its own there.
func partOf(frames []Frame) (part Owner, at int, ok bool) {
	for i := len(frames) - 1; i >= 0; i-- {
		fn := frames[i].Func
		o, found := partAt(fn)
		switch {
		case fn == fills:
			part, at, ok = o, i, true
		case ok && !found && !symbol.Standard(symbol.Package(fn)):
			return Owner{}, 0, false
		case found && ok && o.Kind != Client:
			return part, at, true
		case found:
			return o, i, true
		}
	}
	return part, at, ok
}

// fills is how an answer is copied from a reader: by what it calls to read.
const fills = "net/http.(*response).ReadFrom"

// intercepts reports whether the innermost of the frames is what connect puts between
// the interceptors of a service's calls. Between those of a client's it is the same.
func intercepts(frames []Frame) bool {
	const connect = "connectrpc.com/connect."
	if !strings.HasPrefix(frames[0].Func, connect) || !strings.Contains(frames[0].Func, "unaryThunk.") {
		return false
	}
	for _, f := range frames {
		if strings.HasPrefix(f.Func, connect) && !strings.Contains(f.Func, "unaryThunk.") {
			return framework.Hands(f.Func)
		}
	}
	return false
}

// partAt returns the part that a function belongs to.
func partAt(fn string) (Owner, bool) {
	p, ok := framework.PartOf(fn)
	return Owner{Kind: [...]Kind{framework.Engine: Engine, framework.Router: Router, framework.Client: Client}[p.Role], Name: p.Name}, ok
}

// RPC returns the service and the method for which a generator, gRPC's or kratos's, made
// a function, as Greeter_SayHello of _Greeter_SayHello_Handler and of literals in it, into
// whatever that was inlined; false if it made none such.
func RPC(fn string) (method string, ok bool) { return framework.RPC(fn) }
