// Command engine answers what the engine study asks with one handler on the
// server that it is told, with -tls by TLS.
package main

import (
	"flag"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/arms/serve/engines"
)

func main() {
	server := engines.Flag(engines.NetHTTP)
	secure := flag.Bool("tls", false, "speak TLS")
	flag.Parse()
	h := answers.New()
	arm.Main(arm.Options{Handler: h, Serve: answers.Secure(*secure, server.Run(h), server.RunTLS(h))})
}
