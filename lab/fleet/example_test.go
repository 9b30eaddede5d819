package fleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/fleet/agent"
	"github.com/tarehq/tare/lab/fleet/certs"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// Two agents, here in one process, make a load of 100 requests.
func Example() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	dir, err := os.MkdirTemp("", "certs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	made, err := certs.Make(dir, []string{"127.0.0.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var agents []string
	for range 2 {
		addr, err := serveAgent(ctx, made[0], strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			fmt.Println(err)
			return
		}
		agents = append(agents, addr)
	}

	security, err := certs.Coordinator(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := fleet.Connect(ctx, fleet.Options{Agents: agents, TLS: security, Version: "v1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	rep, err := f.Run(ctx, load.Options{
		Targets: []load.Target{{URL: server.URL}}, Schedule: pace.Constant(200), Duration: 500 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rep.Result.Counts.Scheduled, rep.Agents[0].Result.Counts.Scheduled, rep.Agents[1].Result.Counts.Scheduled)
	// Output: 100 50 50
}

// serveAgent serves coordinators until ctx ends.
func serveAgent(ctx context.Context, dir, place string) (addr string, err error) {
	security, err := certs.Agent(dir)
	if err != nil {
		return "", err
	}
	served, err := agent.New(agent.Config{Allow: []string{place}}, security, "v1", slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = served.Serve(ctx, listener) }()
	return listener.Addr().String(), nil
}
