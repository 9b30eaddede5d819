package fastloop

import (
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tarehq/tare/arms/arm"
)

// A request has its method as one from a connection has, so that to keep it allocates nothing.
func TestMethodIsSet(t *testing.T) {
	for given, want := range map[string]string{"": "GET", "GET": "GET", "POST": "POST"} {
		ask := Of(func(ctx *fasthttp.RequestCtx) { kept = ctx.Method() })(arm.LoopRequest{Method: given, Target: "/"})
		if n := testing.AllocsPerRun(100, func() { ask() }); n > 0 || string(kept) != want {
			t.Errorf("method %q: got %g allocations and %q, want none and %s", given, n, kept, want)
		}
	}
}

// kept is beyond the handler, as a framework keeps a method in its context.
var kept []byte
