// Package fastloop runs a fasthttp handler in the in-process loop of an arm.
//
// fasthttp's server reads every request of a connection into one context, which
// it resets in between. The loop does the same without the reading: each
// request has one context, whose answer and values are reset before every call.
package fastloop

import (
	"cmp"

	"github.com/valyala/fasthttp"

	"github.com/tarehq/tare/arms/arm"
)

// Of returns the loop of an arm that serves h.
func Of(h fasthttp.RequestHandler) func(arm.LoopRequest) func() arm.Answer {
	return func(q arm.LoopRequest) func() arm.Answer {
		req := fasthttp.AcquireRequest()
		defer fasthttp.ReleaseRequest(req)
		req.Header.SetMethod(cmp.Or(q.Method, fasthttp.MethodGet)) // of one that is not set, each look makes a copy
		req.SetRequestURI(q.Target)
		req.Header.SetHost("127.0.0.1")
		for name, value := range q.Header {
			req.Header.Set(name, value)
		}
		req.SetBodyString(q.Body)
		ctx := new(fasthttp.RequestCtx)
		ctx.Init(req, nil, nil) // copies the request
		return func() arm.Answer {
			ctx.Response.Reset()
			ctx.ResetUserValues()
			h(ctx)
			return arm.Answer{Status: ctx.Response.StatusCode(), Body: ctx.Response.Body()}
		}
	}
}
