// Package arm is what an arm written in Go is built on: a program that tare
// starts, loads and asks about itself.
//
// A main parses its own flags and calls [Main] with its handler. Main listens
// where tare says and answers on tare's control socket:
//
//	TARE_ADDR     host:port to listen on; without it 127.0.0.1:8080
//	TARE_FD=3     serve the listener inherited as file descriptor 3 instead
//	TARE_CONTROL  path of the Unix socket to answer on; without it none is made
//
// The control socket takes one JSON object a line and answers each with one
// line; docs/arm.md describes it for programs in other languages. While nobody
// asks, its goroutine sleeps in Accept, so an arm under load is undisturbed.
//
// The package promises that what it adds to a program is the same for every
// arm. It imports the standard library only, so that an arm inherits nothing
// but what it shows. It is not a server framework: a service has no use for it.
package arm

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Options say what the arm serves. Handler or Serve must be set.
type Options struct {
	// Handler answers the requests.
	Handler http.Handler
	// Serve accepts connections until the listener fails. Nil serves Handler
	// with an http.Server whose other fields are zero.
	Serve func(net.Listener) error
	// Loop prepares one request of the in-process loop and returns the
	// function that answers it once. Nil calls Handler with a reused request
	// and response writer. The function is called from one goroutine; the
	// answer's body may be reused by its next call.
	Loop func(LoopRequest) func() Answer
	// Context makes the context that a request of the in-process loop has
	// where its handler depends on what the engine's does. Renew is called
	// before each time the request is answered, and does to the context what the
	// engine does between two requests; its cost counts. Nil: the background
	// context.
	Context func() (ctx context.Context, renew func())
	// Facts returns what the arm reports of itself beside the Go version and
	// GOMAXPROCS. Nil reports no more.
	Facts func() map[string]string
	// Metrics returns counts of the arm's own, by names that runtime/metrics does
	// not have; they only grow. Nil counts nothing.
	Metrics func() map[string]float64
}

// Main serves until SIGTERM or an interrupt, upon which the process exits with
// status 0 at once. It does not return: an arm that cannot listen, or whose
// server fails, says so on standard error and exits with status 1.
func Main(o Options) {
	if err := run(o); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(o Options) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	if path := os.Getenv("TARE_CONTROL"); path != "" {
		l, err := net.Listen("unix", path)
		if err != nil {
			return fmt.Errorf("listening on the control socket: %w", err)
		}
		defer l.Close() // removes the socket's file
		go (&control{options: o, metrics: newMetricsReader()}).serve(l)
	}
	l, err := listen()
	if err != nil {
		return err
	}
	serve := o.Serve
	if serve == nil {
		serve = (&http.Server{Handler: o.Handler}).Serve
	}
	failed := make(chan error, 1)
	go func() { failed <- serve(l) }()
	select {
	case <-ended:
		return nil
	case err := <-failed:
		if err != nil {
			return fmt.Errorf("serving: %w", err)
		}
		return nil
	}
}

// listen returns the inherited listener or one on the address to serve.
func listen() (net.Listener, error) {
	if fd := os.Getenv("TARE_FD"); fd != "" {
		if fd != "3" {
			return nil, fmt.Errorf("TARE_FD is %q: only 3 is known", fd)
		}
		f := os.NewFile(3, "listener")
		defer f.Close() // FileListener holds a duplicate
		l, err := net.FileListener(f)
		if err != nil {
			return nil, fmt.Errorf("taking over the listener at file descriptor 3: %w", err)
		}
		return l, nil
	}
	addr := os.Getenv("TARE_ADDR")
	if addr != "" {
		return net.Listen("tcp", addr)
	}
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err == nil {
		fmt.Fprintf(os.Stderr, "listening on http://%s\n", l.Addr())
	}
	return l, err
}
