//tare:module github.com/valyala/fasthttp

// Command proxy-fasthttp passes requests on to three upstreams by valyala/fasthttp alone: its
// server, and its LBClient over a HostClient for each upstream, as its documentation shows a
// reverse proxy. The client's Host is passed on, and for whom in the X-Forwarded fields.
//
// The upstreams are those of package upstreams, as for the other arms of study proxies.
package main

import (
	"net"

	"github.com/valyala/fasthttp"

	"github.com/tarehq/tare/arms/proxies/upstreams"
)

func main() {
	upstreams.Arm(func(addresses []string) func(net.Listener) error {
		return (&fasthttp.Server{Handler: handler(addresses)}).Serve
	})
}

func handler(addresses []string) fasthttp.RequestHandler {
	up := &fasthttp.LBClient{Timeout: upstreams.Patience}
	for _, a := range addresses {
		up.Clients = append(up.Clients, &fasthttp.HostClient{Addr: a, NoDefaultUserAgentHeader: true, DisablePathNormalizing: true})
	}
	return func(ctx *fasthttp.RequestCtx) {
		in := &ctx.Request.Header
		in.Del(fasthttp.HeaderConnection)
		in.Set(fasthttp.HeaderXForwardedFor, ctx.RemoteIP().String())
		in.SetBytesV(fasthttp.HeaderXForwardedHost, in.Host())
		in.Set(fasthttp.HeaderXForwardedProto, "http")
		if err := up.Do(&ctx.Request, &ctx.Response); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadGateway)
			return
		}
		ctx.Response.Header.Del(fasthttp.HeaderConnection)
	}
}
