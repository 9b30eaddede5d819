// Package symptom recognises on stacks what the rules of package doctor look for.
//
// It classifies a stack by the functions on it. It knows functions of the standard library and
// of widely used modules by their names, and nothing of what they cost.
package symptom

import (
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
)

// Match says which stacks a matter is about: it returns the index of the outermost
// frame that is part of it, or -1. Frames are innermost first.
type Match func(frames []cost.Frame) int

// Calls matches stacks with a function that begins with one of the prefixes.
func Calls(prefixes ...string) Match {
	return func(frames []cost.Frame) int {
		for i := len(frames) - 1; i >= 0; i-- {
			if begins(frames[i].Func, prefixes) {
				return i
			}
		}
		return -1
	}
}

// Outside matches what m does, and returns who called for it: the next frame that is of
// another package.
func Outside(m Match) Match {
	return func(frames []cost.Frame) int {
		at := m(frames)
		if at < 0 {
			return -1
		}
		for of := frames[at].Package(); at+1 < len(frames) && frames[at].Package() == of; {
			at++
		}
		return at
	}
}

func begins(fn string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(fn, p) })
}

var profiling = Calls("net/http/pprof.", "runtime/pprof.", "runtime/trace.", "runtime.traceAdvance", "runtime.ReadTrace",
	"github.com/tarehq/tare/arms/arm.(*control).")

// Instrument reports whether a stack is of answering those who profile the
// service. What that spends is the diagnosis's own price, and nobody's fault.
func Instrument(frames []cost.Frame) bool { return profiling(frames) >= 0 }

// Itself matches what m does, but for what others do inside it: whatever an encoder
// writes to, or reads from, sends, compresses or stores the text, however it was made.
func Itself(m Match) Match {
	file := Calls("os.(*File)")
	return func(frames []cost.Frame) int {
		at := m(frames)
		if at < 0 || file(frames[:at]) >= 0 {
			return -1
		}
		if _, inside := new(cost.Rules).Inside(frames); at >= len(inside) {
			return -1
		}
		return at
	}
}

// Unrouted matches what m does, but for what a router or an engine does by itself: a
// service can do nothing about that, such as chi's one value for each request.
func Unrouted(m Match) Match {
	return func(frames []cost.Frame) int {
		at := m(frames)
		if at < 0 {
			return -1
		}
		if owner, _ := cost.Charge(frames); owner.Kind == cost.Router || owner.Kind == cost.Engine {
			return -1
		}
		return at
	}
}

// Unlogged matches what m does, but for where a line of log/slog comes from: its Logger
// asks that for every line, whether it is shown or not, and cannot be told not to.
func Unlogged(m Match) Match {
	return func(frames []cost.Frame) int {
		at := m(frames)
		if at >= 0 && at+1 < len(frames) && strings.HasPrefix(frames[at+1].Func, "log/slog.") {
			return -1
		}
		return at
	}
}

// Collecting matches the collector's work, assists among it.
func Collecting(frames []cost.Frame) int {
	if _, cause := cost.Charge(frames); cause != cost.GC {
		return -1
	}
	return len(frames) - 1
}

// Background matches the collector's work that has no owner.
func Background(frames []cost.Frame) int {
	if owner, cause := cost.Charge(frames); cause != cost.GC || owner.Kind != cost.Runtime {
		return -1
	}
	return len(frames) - 1
}

// Logging matches the loggers in wide use, frameworks' access logs, and lines that fmt
// writes to a file.
func Logging(frames []cost.Frame) int {
	if at := loggers(frames); at >= 0 {
		return at
	}
	for i := len(frames) - 1; i > 0; i-- {
		if accessLog(frames[i:i+1]) >= 0 && (frames[i-1].Standard() || strings.HasSuffix(frames[i-1].Func, ".Write")) {
			return i // it writes; else it has handed the request on
		}
		if strings.HasPrefix(frames[i].Func, "fmt.Fprint") && writing(frames[:i]) >= 0 {
			return i
		}
	}
	return -1
}

var (
	loggers = Calls("log.", "log/slog.", "go.uber.org/zap", "github.com/rs/zerolog", "github.com/sirupsen/logrus", "github.com/hashicorp/go-hclog")
	writing = Calls("os.(*File).Write")

	// accessLog matches the middlewares that log a line for each request by themselves.
	accessLog = Calls("github.com/gin-gonic/gin.LoggerWithConfig", "github.com/labstack/echo/v4/middleware.LoggerWithConfig",
		"github.com/gofiber/fiber/v2/middleware/logger.", "github.com/gofiber/fiber/v3/middleware/logger.", "github.com/gorilla/handlers.write")
)

// Deferring matches the runtime's own work for deferred calls on the heap; what
// the deferred function does is not its price.
func Deferring(frames []cost.Frame) int {
	for i := range frames {
		fn := frames[i].Func
		if keeps(fn) || fn == "runtime.deferreturn" || fn == "runtime.popDefer" {
			return i
		}
		if !runtime(fn) {
			return -1
		}
	}
	return -1
}

// Keeping matches putting a deferred call on the heap.
func Keeping(frames []cost.Frame) int {
	return slices.IndexFunc(frames, func(f cost.Frame) bool { return keeps(f.Func) })
}

func keeps(fn string) bool {
	return fn == "runtime.deferproc" || fn == "runtime.deferprocat" || fn == "runtime.newdefer" || fn == "runtime.deferrangefunc"
}

func runtime(fn string) bool {
	return strings.HasPrefix(fn, "runtime.") || strings.HasPrefix(fn, "internal/runtime/")
}

// AllocatingAt matches allocations of one line: in an allocation profile it is the
// innermost frame, on CPU stacks the runtime's own are inside it.
func AllocatingAt(at cost.Frame) Match {
	return func(frames []cost.Frame) int {
		for i, f := range frames {
			if f.Func == at.Func && f.File == at.File && f.Line == at.Line {
				return i
			}
			if !runtime(f.Func) {
				return -1
			}
		}
		return -1
	}
}
