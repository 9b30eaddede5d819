// Command api is a small service of orders on package serve and its middlewares, as a
// service on the internet would be: settings from the environment, health and readiness,
// metrics, traces, a log, limits, and an end that loses no request.
//
//	API_SECRET     signs the clients' tokens (HS256); 32 bytes or more, must be set
//	API_ADDR       where clients come; 127.0.0.1:8080
//	API_ADMIN      where the operator asks for /healthz, /readyz, /metrics and /debug/pprof/;
//	               127.0.0.1:8081
//	API_ORDERS     the file of SQLite that keeps the orders; orders.db
//	API_PROXIES    networks of the proxies that are trusted, as in 10.0.0.0/8,fd00::/8; none
//	API_RATE       requests a second that a client may make; 100
//	API_IN_FLIGHT  requests at a time; as many again wait a second at most; 512
//	API_TRACES     requests a second that are traced at most; 10
//	API_DRAIN      how long /readyz refuses before the end, so that balancers see it; 2s
//
// A client sends "Authorization: Bearer TOKEN". The token's subject is the customer, its
// audience is orders; docs/middleware.md shows how to make one by openssl. POST /orders
// places {"items": [{"sku": "a", "count": 1}]}, GET /orders lists the customer's latest
// orders, GET /orders/{id} returns one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// lastRequests is how long the requests under way may take when the service ends.
const lastRequests = 30 * time.Second

// run serves until ctx ends, and logs to out.
func run(ctx context.Context, getenv func(string) string, out io.Writer) (err error) {
	set, err := readSettings(getenv)
	if err != nil {
		return err
	}
	orders, err := openOrders(set.orders)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, orders.close()) }()
	log := slog.New(slog.NewJSONHandler(out, nil))
	s, err := newService(set, orders, log, out)
	if err != nil {
		return err
	}
	clients, operator := &serve.Server{Handler: s.handler}, &serve.Server{Handler: s.admin()}
	forClients, err := listen(set.addr)
	if err != nil {
		return err
	}
	forOperator, err := listen(set.admin)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- clients.Serve(forClients) }()
	go func() { failed <- operator.Serve(forOperator) }()
	s.ready.Store(true)
	log.Info("serving", "api", forClients.Addr().String(), "admin", forOperator.Addr().String())
	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("ending")
		s.ready.Store(false)
		time.Sleep(set.drain) // requests come until balancers have seen it
	}
	last, cancel := context.WithTimeout(context.Background(), lastRequests)
	defer cancel()
	return errors.Join(err, clients.Shutdown(last), operator.Shutdown(last), s.close(last))
}

// listen does what serve.Server.ListenAndServe does first, so that run knows of both addresses before
// it says that it serves. Without MPTCP, a shutdown loses no connection that was just made.
func listen(addr string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	return config.Listen(context.Background(), "tcp", addr)
}
