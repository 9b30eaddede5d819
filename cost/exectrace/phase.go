package exectrace

import (
	"strings"

	"github.com/tarehq/tare/cost"
)

// phase is what a server's goroutine is at, as its stack tells.
type phase int

const (
	nowhere   phase = iota // tells nothing
	outside                // of any request: accepting, a handshake, closing
	between                // waiting for the next request to begin
	queueing               // waiting to be handed a request that has begun
	reading                // a request's head or body, before its handler
	handling               // in the handler
	finishing              // sending what the handler left to be sent
	surrender              // giving the connection to the handler
)

// The engines known, by the function that serves a connection. What it calls
// tells the phase.
const (
	netHTTP    = "net/http.(*conn).serve"
	clearHTTP2 = "net/http.(*conn).maybeServeUnencryptedHTTP2" // called by that
	fastHTTP   = "github.com/valyala/fasthttp."
	tare       = "github.com/tarehq/tare/serve.(*conn)."
	gRPC       = "google.golang.org/grpc.(*Server)."
)

// announcement is the category of what tare's serve logs of each request: it reads
// and writes by calls that the tracer is not told of.
const announcement = "tare/serve"

// otherEngines are those whose requests are not found, by what their functions
// begin with. They hand a request from one goroutine to another as bytes come.
var otherEngines = [...]struct{ prefix, name string }{
	{"github.com/cloudwego/hertz/pkg/route.(*Engine).", "hertz"},
	{"github.com/lesismal/nbio/nbhttp.(*Engine).", "nbio"},
	{"github.com/lesismal/nbio/nbhttp.(*ServerProcessor).", "nbio"},
}

// streams are the functions of net/http that run one request of HTTP/2, a goroutine
// each.
var streams = map[string]bool{
	"net/http.(*http2serverConn).runHandler":                 true,
	"net/http/internal/http2.(*serverConn).runHandler":       true,
	"golang.org/x/net/http2.(*serverConn).runHandler":        true,
	"vendor/golang.org/x/net/http2.(*serverConn).runHandler": true,
}

// phaseOf tells the phase by a goroutine's stack, and whether the goroutine is a
// server's connection.
func phaseOf(frames []cost.Frame) (phase, bool) {
	for i := len(frames) - 1; i >= 0; i-- {
		switch fn := frames[i].Func; {
		case streams[fn]:
			return handling, true
		case fn == netHTTP:
			return netHTTPPhase(frames[:i]), true
		case strings.HasPrefix(fn, fastHTTP+"(*Server).serveConn"):
			return fastHTTPPhase(frames[:i]), true
		case strings.HasPrefix(fn, fastHTTP+"(*workerPool)."):
			if findOutermost(frames[:i], fastHTTP+"(*Server).serveConn") < 0 {
				return outside, true
			}
		case fn == tare+"serve":
			return tarePhase(frames[:i]), true
		case strings.HasPrefix(fn, gRPC):
			return gRPCPhase(strings.TrimPrefix(fn, gRPC), frames[:i]), true
		}
	}
	return nowhere, false
}

// findOutermost returns the outermost frame whose function begins with prefix, -1 if
// there is none.
func findOutermost(frames []cost.Frame, prefix string) int {
	for i := len(frames) - 1; i >= 0; i-- {
		if strings.HasPrefix(frames[i].Func, prefix) {
			return i
		}
	}
	return -1
}

func netHTTPPhase(inner []cost.Frame) phase {
	if len(inner) == 0 {
		return nowhere
	}
	if findOutermost(inner, "net/http.(*conn).hijackLocked") >= 0 {
		return surrender
	}
	switch fn := inner[len(inner)-1].Func; {
	case fn == "net/http.serverHandler.ServeHTTP":
		return handling
	case fn == "net/http.(*response).finishRequest":
		return finishing
	case fn == "net/http.(*conn).readRequest",
		fn == clearHTTP2 && findOutermost(inner, "bufio.(*Reader).Peek") >= 0: // which protocol it is
		return reading
	case strings.HasPrefix(fn, "bufio.(*Reader)."):
		return between
	case strings.HasPrefix(fn, netHTTP+"."), // deferred
		fn == clearHTTP2, strings.HasPrefix(fn, "net/http.(*conn).close"), strings.HasPrefix(fn, "crypto/tls."),
		strings.HasPrefix(fn, "net/http.http2"), strings.HasPrefix(fn, "net/http.(*http2"):
		return outside
	}
	return nowhere
}

func fastHTTPPhase(inner []cost.Frame) phase {
	for len(inner) > 0 && strings.HasPrefix(inner[len(inner)-1].Func, fastHTTP+"(*Server).serveConn") {
		inner = inner[:len(inner)-1] // it has a part of its own since v1.60
	}
	if len(inner) == 0 {
		return nowhere
	}
	switch fn := inner[len(inner)-1].Func; {
	case fn == "bufio.(*Reader).Peek", fn == fastHTTP+"acquireByteReader":
		return between
	case strings.HasPrefix(fn, fastHTTP+"(*Request"):
		return reading
	case strings.HasPrefix(fn, "bufio."), fn == fastHTTP+"writeResponse":
		return finishing
	case strings.HasPrefix(fn, fastHTTP+"(*Server).getNextProto"), strings.HasPrefix(fn, "crypto/tls."):
		return outside
	case strings.HasPrefix(fn, fastHTTP) && !strings.Contains(fn, ".func"),
		strings.HasPrefix(fn, "net."), strings.HasPrefix(fn, "sync."), strings.HasPrefix(fn, "runtime."), strings.HasPrefix(fn, "time."):
		return nowhere
	}
	return handling
}

func tarePhase(inner []cost.Frame) phase {
	for i := len(inner) - 1; i >= 0; i-- {
		name, ok := strings.CutPrefix(inner[i].Func, tare)
		if !ok {
			return nowhere
		}
		switch name {
		case "converse", "step":
		case "fill":
			return between
		case "parse":
			return reading
		case "flush", "refuse":
			return finishing
		case "handle":
			if findOutermost(inner[:i], "github.com/tarehq/tare/serve.(*response).Hijack") >= 0 {
				return surrender
			}
			return handling
		default:
			return outside
		}
	}
	return nowhere
}

// gRPCPhase tells the phase by the outermost function of gRPC's server: one call is
// run by a goroutine of its own, or by a worker that is handed it.
func gRPCPhase(outermost string, inner []cost.Frame) phase {
	const handle = gRPC + "handleStream"
	switch {
	case strings.HasPrefix(outermost, "serveStreams."), outermost == "handleStream":
		return handling
	case outermost != "serverWorker":
		return outside
	case findOutermost(inner, handle) >= 0:
		return handling
	case findOutermost(inner, gRPC) < 0:
		return queueing
	}
	return nowhere
}
