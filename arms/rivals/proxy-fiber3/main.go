//tare:module github.com/gofiber/fiber/v3

// Command proxy-fiber3 passes requests on to three upstreams by the balancer of gofiber/fiber
// version 3, its middleware proxy. The client's Host is passed on, and for whom in the
// X-Forwarded fields.
//
// The upstreams are those of package upstreams, as for the other arms of study proxies.
package main

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/proxy"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/proxies/upstreams"
)

// patience is how long an answer may take, as the other proxies have it.
const patience = time.Minute

func main() {
	upstreams.Main()
	addresses, err := upstreams.Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "proxy-fiber3: %v\n", err)
		os.Exit(1)
	}
	app := fiber.New()
	app.Use(proxy.Balancer(proxy.Config{Servers: addresses, Timeout: patience, ModifyRequest: forward}))
	arm.Main(arm.Options{Serve: func(l net.Listener) error {
		return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
	}})
}

// forward says for whom a request is.
func forward(c fiber.Ctx) error {
	in := &c.Request().Header
	in.Set(fiber.HeaderXForwardedFor, c.IP())
	in.SetBytesV(fiber.HeaderXForwardedHost, in.Host())
	in.Set(fiber.HeaderXForwardedProto, "http")
	return nil
}
