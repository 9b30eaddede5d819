//tare:module github.com/gofiber/fiber/v3

// Command proxy-fiber3 passes requests on to three upstreams by the balancer of gofiber/fiber
// version 3, its middleware proxy. The client's Host is passed on, and for whom in the
// X-Forwarded fields.
//
// The upstreams are those of package upstreams, as for the other arms of study proxies.
package main

import (
	"net"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/proxy"

	"github.com/tarehq/tare/arms/proxies/upstreams"
)

func main() {
	upstreams.Arm(func(addresses []string) func(net.Listener) error {
		app := fiber.New()
		app.Use(proxy.Balancer(proxy.Config{Servers: addresses, Timeout: upstreams.Patience, ModifyRequest: forward}))
		return func(l net.Listener) error { return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }
	})
}

// forward says for whom a request is.
func forward(c fiber.Ctx) error {
	in := &c.Request().Header
	in.Set(fiber.HeaderXForwardedFor, c.IP())
	in.SetBytesV(fiber.HeaderXForwardedHost, in.Host())
	in.Set(fiber.HeaderXForwardedProto, "http")
	return nil
}
