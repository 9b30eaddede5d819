package main

import (
	"context"
	"net"
	"net/http"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/arms/upstream"
)

// run enters the namespace, and serves if it is there. It returns what went wrong.
func run(o options) error {
	if !o.within {
		return enter(o)
	}
	h, err := newService()
	if err != nil {
		return err
	}
	arm.Main(arm.Options{Handler: h, Facts: readSettings})
	return nil
}

// readSettings returns what holds in this namespace, as facts of the arm.
func readSettings() map[string]string {
	facts := map[string]string{}
	for _, name := range []string{
		"net.core.somaxconn", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_fastopen",
		"net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
	} {
		if value, err := (setting{name: name}).read(); err == nil {
			facts[name] = value
		}
	}
	return facts
}

// newService returns the handler, and starts the service that /call calls.
func newService() (http.Handler, error) {
	plain := answers.New()
	call, err := startCalled(plain)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", plain)
	mux.HandleFunc("GET /last", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		reply(w, string(answers.Plain()))
	})
	mux.HandleFunc("GET /call", func(w http.ResponseWriter, r *http.Request) {
		body, err := call(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		reply(w, body)
	})
	return mux, nil
}

func reply(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", answers.Text)
	_, _ = w.Write([]byte(body)) // fails when the client has gone
}

// startCalled serves h within the namespace, and returns what calls it on a new connection
// each time. Both ends ask for TCP fast open; the kernel's setting decides what comes of it.
func startCalled(h http.Handler) (call func(context.Context) (string, error), err error) {
	const pending = 256 // connections whose opening carried data
	listening := net.ListenConfig{Control: withOption(unix.TCP_FASTOPEN, pending)}
	listening.SetMultipathTCP(false) // its sockets are others
	l, err := listening.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = (&http.Server{Handler: h}).Serve(l) }() // to the end of the program
	dialer := net.Dialer{Control: withOption(unix.TCP_FASTOPEN_CONNECT, 1)}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}}
	url := "http://" + l.Addr().String() + answers.PlainPath
	return func(ctx context.Context) (string, error) { return upstream.Get(ctx, client, url) }, nil
}

// withOption sets an option of TCP on a socket before it is used.
func withOption(option, value int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, option, value) })
		if err != nil {
			return err
		}
		return failed
	}
}
