// Command engine answers what the engine study asks with one handler on the
// server that it is told.
package main

import (
	"flag"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/arms/serve/engines"
)

func main() {
	server := engines.Flag(engines.NetHTTP)
	flag.Parse()
	h := answers.New()
	arm.Main(arm.Options{Handler: h, Serve: server.Run(h)})
}
