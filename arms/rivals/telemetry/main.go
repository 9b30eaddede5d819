//tare:module go.opentelemetry.io/otel

// Command telemetry answers requests on gin and tells a collector about them.
//
//	GET /orders/:id   a fixed answer of 1 KiB
//	GET /page         a page of 50 KB that encoding/json encodes
//
// The collector is a process of its own that is no child of this one, so that tare counts
// its CPU and its memory apart. It takes OTLP over gRPC, answers as a collector does and
// drops what it gets. With -collector it is a real one. What is sent to it and what it
// answers is counted in bytes at the connections.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/tarehq/tare/arms/arm"
)

func main() {
	var o options
	flag.StringVar(&o.signals, "signals", "none", "which `signals` are sent: "+allSignals)
	flag.StringVar(&o.sampler, "sampler", "always", "which requests are traced, and by what `middleware`: "+allSamplers)
	flag.BoolVar(&o.gzip, "gzip", false, "compress what is sent")
	flag.BoolVar(&o.readings, "readings", false, "read the runtime's metrics before and after each handler")
	program := flag.String("collector", "", "OpenTelemetry Collector to send to, a `program`")
	receive := flag.String("receive", "", "be the collector's process: detach or run")
	flag.Parse()
	if err := run(o, *program, *receive); err != nil {
		fmt.Fprintf(os.Stderr, "telemetry: %v\n", err)
		os.Exit(1)
	}
}

func run(o options, program, receive string) error {
	switch receive {
	case "":
	case "detach":
		return detach(program)
	case "run":
		return collect(program, os.Stdin, os.Stdout)
	default:
		return fmt.Errorf("receive %q: want detach or run", receive)
	}
	c, err := startCollector(program)
	if err != nil {
		return err
	}
	s, err := newService(o, c.addresses)
	if err != nil {
		return err
	}
	a := arm.Options{Handler: s.handler}
	if o.readings {
		a.Facts = func() map[string]string { return map[string]string{"a reading counts": readingCounts()} }
	}
	if o.signals != "none" {
		a.Metrics = func() map[string]float64 { return map[string]float64{"collector/bytes": float64(c.sent(s))} }
	}
	arm.Main(a)
	runtime.KeepAlive(c)
	return nil
}
