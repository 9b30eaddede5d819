//tare:module github.com/lesismal/nbio

// Command engine-nbio answers what the engine study asks by lesismal/nbio's
// nbhttp, which runs http.Handlers on event loops: the handler that net/http and
// serve run, with the engine's defaults, logs off.
package main

import (
	"net"

	"github.com/lesismal/nbio/logging"
	"github.com/lesismal/nbio/nbhttp"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
)

func main() {
	logging.SetLevel(logging.LevelNone)
	arm.Main(arm.Options{Serve: serve})
}

// serve runs until the process ends.
func serve(l net.Listener) error {
	e := nbhttp.NewEngine(nbhttp.Config{
		Network: "tcp",
		Addrs:   []string{l.Addr().String()},
		Listen:  func(string, string) (net.Listener, error) { return l, nil },
		Handler: answers.New(),
	})
	if err := e.Start(); err != nil {
		return err
	}
	select {}
}
