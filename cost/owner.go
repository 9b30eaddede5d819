package cost

import (
	"github.com/tarehq/tare/cost/internal/framework"
	"github.com/tarehq/tare/cost/internal/symbol"
	"path"
	"slices"
	"strings"
	"time"
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

// Owner is what a cost is attributed to. The same function of the same file is equal.
type Owner struct {
	Kind Kind
	Name string // for people: package and function, or the part of the engine
	File string // of its function; "" for parts of the engine and the runtime
	Decl int    // line on which the function begins
}

// Where returns FOLDER/FILE:LINE; "" if it is not known.
func (o Owner) Where() string { return symbol.Place(o.File, o.Decl) }

// Rules tell whose a stack is. What they have learned of a profile as a whole
// shows them handlers that a single stack does not. The zero value has learned
// nothing. Rules are safe for concurrent use.
type Rules struct {
	answering  map[function]bool
	edges      map[edge]bool // calls by which chains that tare does not know hand on
	literals   map[function]function
	direct     map[function]bool // links of such chains which call the next as any function
	guessed    [][2]string       // functions taken for handlers, and the middleware that calls each
	frameworks map[function]bool // dependencies' handlers that begin such a chain
	hands      map[function]bool // dependencies' functions that hand on from one link of it to the next
	packages   symbol.Packages
}

// Package is the import path of an owner's package, or the folder of its file.
func (o *Rules) Package(of Owner) string { return o.packages.Of(of.File) }

// LearnPackages takes in whose functions stand on a stack.
func (o *Rules) LearnPackages(frames []Frame) {
	for i := range frames {
		o.packages.Learn(frames[i].Func, frames[i].File)
	}
}

// function identifies one of the program's.
type function struct{ name, file string }

// Learn looks through profiles for chains of frameworks that tare does not know, and
// for handlers that a framework does not call itself: those behind the middlewares of
// echo, fasthttp and their like, which call what comes next as they would any
// function. What answers a request there is one, or else what holds most of the
// innermost middleware's time.
func Learn(profiles ...[]Stack) *Rules {
	o := &Rules{
		answering: map[function]bool{}, edges: map[edge]bool{}, literals: map[function]function{}, direct: map[function]bool{},
		frameworks: map[function]bool{}, hands: map[function]bool{}, packages: symbol.Packages{},
	}
	for _, stacks := range profiles {
		o.learnFrameworks(stacks)
		o.learnRecursion(stacks)
		o.learnDirect(stacks)
	}
	for _, stacks := range profiles {
		o.learnLiterals(stacks)
		for i := range stacks {
			o.LearnPackages(stacks[i].Frames)
			o.learnAnswer(stacks[i].Frames)
		}
	}
	for _, stacks := range profiles {
		o.learnUnanswered(stacks)
	}
	return o
}

// learnAnswer takes the function that a middleware called, and in which the request was
// answered.
func (o *Rules) learnAnswer(frames []Frame) {
	answer := slices.IndexFunc(frames, func(f Frame) bool { return framework.Answers(f.Func) })
	if answer < 0 || !directChains(frames) && len(o.direct) == 0 {
		return
	}
	for i := answer + 1; i+1 < len(frames); i++ {
		if around, ok := o.owned(frames, i+1, true); !ok || around.Kind != Handler {
			continue
		}
		f := frames[i]
		if symbol.IsClosure(frames[i+1].Func) && !framework.Foreign(symbol.Package(f.Func)) && !framework.Writes(f.Func) && o.callsNext(frames, i+1) {
			o.answering[o.functionOf(f)] = true
		}
		return
	}
}

// charge is what one stack comes to: its owner, where on the stack that stands,
// and the owners around it, outermost first.
type charge struct {
	owner  Owner
	at     int // index of the owner's frame; len(frames) if it has none
	around []Owner

	enclosed []Owner // of them, and of owner, those that are [Enclosed]
}

// charge finds the innermost owner of a stack. A stack's middlewares and handler
// are distinguished later, by whether anything is ever called by them.
func (o *Rules) charge(frames []Frame) charge {
	c := charge{at: len(frames)}
	inside := false // an owner that is no router was seen
	for i := len(frames) - 1; i >= 0; i-- {
		owner, ok := o.owned(frames, i, inside)
		if !ok {
			continue
		}
		if c.at < len(frames) {
			c.around = append(c.around, c.owner)
		}
		c.at, c.owner = i, owner
		if Enclosed(frames, i) {
			c.enclosed = append(c.enclosed, owner)
		}
		inside = inside || owner.Kind == Handler
	}
	if part, i, ok := partOf(frames[:c.at]); ok {
		if c.at < len(frames) {
			c.around = append(c.around, c.owner)
		}
		c.owner, c.at = part, i
	} else if c.at == len(frames) {
		c.owner = rootOf(frames)
	} else if c.owner.Kind == Handler {
		if k, at := writtenThrough(frames[:c.at+1], c.around); k >= 0 {
			c.owner, c.around, c.at = c.around[k], c.around[:k], at
		}
	}
	return c
}

// Enclosed reports whether frame i, an owner's, is a middleware that its framework runs
// inside a handler, as kratos does: it stays a middleware with nothing inside it, and
// makes none of what is around it.
func Enclosed(frames []Frame, i int) bool {
	around := frames[i+1:]
	return strings.HasPrefix(chainOf(around), framework.Kratos) && chained(frames[i].Func, around)
}

// writtenThrough finds a middleware through whose writer an owner writes, the last of
// frames: which of those around it that is, and the frame of the writer's method; -1 if
// there is none. The writer's is the file of the middleware, or its folder, where that
// is no other owner's.
func writtenThrough(frames []Frame, around []Owner) (k, at int) {
	inner := frames[len(frames)-1]
	for at, f := range frames[:len(frames)-1] {
		if f.File == "" || f.File == inner.File || !symbol.IsMethod(f.Func) || !framework.Writes(f.Func) || framework.Foreign(symbol.Package(f.Func)) {
			continue
		}
		k := only(around, func(o Owner) bool { return o.File == f.File })
		if dir := path.Dir(f.File); k < 0 && dir != path.Dir(inner.File) {
			k = only(around, func(o Owner) bool { return o.File != "" && path.Dir(o.File) == dir })
		}
		if k >= 0 {
			return k, at
		}
	}
	return -1, 0
}

// only returns where the owner is that fits; -1 if none does, or several do.
func only(owners []Owner, fits func(Owner) bool) int {
	k := slices.IndexFunc(owners, fits)
	if k < 0 || slices.ContainsFunc(owners[k+1:], func(o Owner) bool { return o != owners[k] && fits(o) }) {
		return -1
	}
	return k
}

// Charge returns to whom and to what cause a stack is charged. A middleware is
// not told from a handler by one stack: both are of the kind Handler.
func (o *Rules) Charge(frames []Frame) (Owner, Cause) {
	c := o.charge(frames)
	return c.owner, causeOf(frames[:c.at])
}

// Inside returns whose a stack is, and those of its frames that are the owner's:
// its own and those inside it, innermost first; all of a stack's where the owner
// has no frame of its own.
func (o *Rules) Inside(frames []Frame) (Owner, []Frame) {
	c := o.charge(frames)
	return c.owner, frames[:min(c.at+1, len(frames))]
}

// Charge is [Rules.Charge] without having learned anything.
func Charge(frames []Frame) (Owner, Cause) { return new(Rules).Charge(frames) }

// owned reports whether frame i is where an owner begins. Inside another owner, a
// router is one only where it hands the request on: what else it does there, such
// as encoding an answer, is done for who called it.
func (o *Rules) owned(frames []Frame, i int, inside bool) (Owner, bool) {
	f := frames[i]
	if framework.Dispatches(f.Func) || framework.GeneratedRPC(f.Func) {
		return Owner{}, false
	}
	if o.linked(frames, i) {
		return handlerAt(f), true
	}
	if name, ok := o.handsOn(frames, i); ok {
		return Owner{Kind: Router, Name: name}, true
	}
	pkg := symbol.Package(f.Func)
	if name, ok := framework.RouterOf(pkg); ok {
		if i+1 < len(frames) && framework.OwnMiddleware(f.Func, frames[i+1].Func) {
			return handlerAt(f), true
		}
		return Owner{Kind: Router, Name: name}, entered(frames, i) && (!inside || framework.Hands(f.Func))
	}
	if framework.Foreign(pkg) {
		return handlerAt(f), provided(frames, i)
	}
	if !strings.HasSuffix(f.Func, ".ServeHTTP") && !(i+1 < len(frames) && o.handedOn(frames, i)) {
		return Owner{}, false
	}
	if name, ok := symbol.Module(f.File); ok && len(o.frameworks) > 0 && o.frameworks[o.functionOf(f)] {
		return Owner{Kind: Router, Name: name}, true
	}
	return handlerAt(f), true
}

// handsOn returns the framework that a link called to hand the request on: what it does besides,
// such as encoding an answer, is its own, not the link's.
func (o *Rules) handsOn(frames []Frame, i int) (name string, ok bool) {
	if len(o.hands) == 0 || i+1 == len(frames) || !o.hands[o.functionOf(frames[i])] || frames[i+1].Standard() || symbol.Dependency(frames[i+1].File) {
		return "", false
	}
	return symbol.Module(frames[i].File)
}

// provided reports whether frame i is a handler that the standard library provides,
// such as a reverse proxy, a file server or its own profiles. Those whose receiver
// is no pointer hand on what they get, and are the engine's.
func provided(frames []Frame, i int) bool {
	fn := frames[i].Func
	pkg := symbol.Package(fn)
	if pkg != "net/http" && !strings.HasPrefix(pkg, "net/http/") && pkg != "expvar" {
		return false
	}
	return strings.HasSuffix(fn, ").ServeHTTP") || i+1 < len(frames) && frames[i+1].Func == "net/http.HandlerFunc.ServeHTTP"
}

func handlerAt(f Frame) Owner {
	return Owner{Kind: Handler, Name: f.Name(), File: f.File, Decl: f.Decl}
}

// entered reports whether frame i, a router's, was called by anything but the
// router itself.
func entered(frames []Frame, i int) bool {
	if i+1 == len(frames) || symbol.Package(frames[i+1].Func) != symbol.Package(frames[i].Func) {
		return true
	}
	return i+2 < len(frames) && framework.OwnMiddleware(frames[i+1].Func, frames[i+2].Func)
}

// handedOn reports whether frame i was called by what hands a request on to the
// next of a chain.
func (o *Rules) handedOn(frames []Frame, i int) bool {
	f, caller := frames[i], frames[i+1]
	if framework.Dispatches(caller.Func) || framework.CallsRPC(caller.Func) {
		return true
	}
	pkg := symbol.Package(caller.Func)
	if _, ok := framework.RouterOf(pkg); ok {
		return framework.Hands(caller.Func) || intercepts(frames[i+1:]) || pkg == framework.KratosRPC && chained(f.Func, frames[i+1:])
	}
	if framework.Foreign(pkg) {
		return false
	}
	if strings.HasSuffix(caller.Func, ".HandlerFunc.ServeHTTP") {
		return true // a function in the guise of a handler
	}
	if !o.callsNext(frames, i+1) {
		return false
	}
	return directChains(frames[i+1:]) && chained(f.Func, frames[i+1:]) || o.answering[o.functionOf(f)]
}

// callsNext reports whether frame i is of a chain whose links call the next as any
// function.
func (o *Rules) callsNext(frames []Frame, i int) bool {
	return directChains(frames[i:]) || len(o.direct) > 0 && o.direct[o.functionOf(frames[i])]
}

// SystemMonitor is the function that the Go runtime's own thread runs, which takes
// processors back from system calls and looks for what came while all were busy. A
// service that is idle every now and then wakes it thousands of times a second.
const SystemMonitor = "runtime.sysmon"

// MonitorStack is what the kernel counted for that thread, as a stack beside those of
// the runtime's profiler, which does not watch it.
func MonitorStack(used time.Duration) Stack {
	return Stack{Frames: []Frame{{Func: SystemMonitor}}, Value: float64(used)}
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
		case SystemMonitor:
			return Owner{Kind: Runtime, Name: "system monitor"}
		}
	}
	for i := len(frames) - 1; i >= 0; i-- {
		switch fn := frames[i].Func; {
		case fn == "runtime.mcall" || fn == "runtime.mstart" || fn == "runtime.schedule" || fn == "runtime.rt0_go":
			return Owner{Kind: Runtime, Name: "scheduler"}
		case fn == "runtime.goexit" || fn == "runtime.main":
		case symbol.Package(fn) == "runtime" || fn == "gogo" || fn == "time.now": // the last by linkname
			return callerless
		case symbol.Standard(symbol.Package(fn)):
			return Owner{Kind: Other, Name: symbol.Short(fn)}
		default:
			return Owner{Kind: Other, Name: symbol.Goroutine(frames[i].Func, frames[i].File), File: frames[i].File, Decl: frames[i].Decl}
		}
	}
	if len(frames) > 0 {
		return callerless // where goroutines begin, and nothing else
	}
	return Owner{Kind: Other, Name: "unknown"}
}

var callerless = Owner{Kind: Runtime, Name: "runtime, without a caller"}

var backgroundGC = Owner{Kind: Runtime, Name: "collector, in the background"}
