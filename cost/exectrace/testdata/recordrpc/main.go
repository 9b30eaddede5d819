// Command recordrpc writes the traces of gRPC that the tests beside it read: of a
// server with an interceptor that sleeps for one service, on its own transport with
// and without workers, and behind net/http. It is copied to where that module is and
// run there:
//
//	cp -r cost/exectrace/testdata/recordrpc cost/bpf/probe/testdata/rpc/
//	go -C cost/bpf/probe/testdata/rpc run -trimpath ./recordrpc ../../../../exectrace/testdata
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/trace"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

const pause = 5 * time.Millisecond

type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func sleeps(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if req.(*grpc_health_v1.HealthCheckRequest).Service == "slow" {
		time.Sleep(pause)
	}
	return handler(ctx, req)
}

func main() {
	behind := func(s *grpc.Server, l net.Listener) error {
		var p http.Protocols
		p.SetUnencryptedHTTP2(true)
		return (&http.Server{Handler: s, Protocols: &p}).Serve(l)
	}
	for _, s := range []struct {
		name    string
		workers uint32
		serve   func(*grpc.Server, net.Listener) error
	}{
		{"grpc", 0, (*grpc.Server).Serve},
		{"grpc-workers", 2, (*grpc.Server).Serve},
		{"grpc-behind", 0, behind},
	} {
		server := grpc.NewServer(grpc.NumStreamWorkers(s.workers), grpc.UnaryInterceptor(sleeps))
		grpc_health_v1.RegisterHealthServer(server, health{})
		if err := record(filepath.Join(os.Args[1], s.name+".trace"), func(l net.Listener) { s.serve(server, l) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		server.Stop()
	}
}

// record traces a server that answers eight calls on one connection, two of them
// slow.
func record(path string, serve func(net.Listener)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go serve(l)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := trace.Start(f); err != nil {
		return err
	}
	defer trace.Stop()
	client := grpc_health_v1.NewHealthClient(conn)
	for i := range 8 {
		var req grpc_health_v1.HealthCheckRequest
		if i%4 == 1 {
			req.Service = "slow"
		}
		if _, err := client.Check(context.Background(), &req); err != nil {
			return err
		}
	}
	time.Sleep(10 * time.Millisecond) // until the server is done with the last
	return nil
}
