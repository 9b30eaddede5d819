// Command rpc serves gRPC's health service, a unary method and a streaming one, each
// behind interceptors of which the inner one spins. It prints its address, and for
// each line that it reads how many calls of both it has handled. With -load and an
// address it calls a server's methods in turn, until its input ends.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

type health struct {
	grpc_health_v1.UnimplementedHealthServer
	calls atomic.Int64
}

func (h *health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.calls.Add(1)
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}

func (h *health) Watch(_ *grpc_health_v1.HealthCheckRequest, s grpc_health_v1.Health_WatchServer) error {
	h.calls.Add(1)
	for range 3 {
		if err := s.Send(&grpc_health_v1.HealthCheckResponse{}); err != nil {
			return err
		}
	}
	return nil
}

func spin() {
	for begun := time.Now(); time.Since(begun) < 20*time.Microsecond; {
	}
}

func tagged(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return handler(context.WithValue(ctx, health{}, "tag"), req)
}

func spun(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	spin()
	return handler(ctx, req)
}

func taggedStream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, s)
}

func spunStream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	spin()
	return handler(srv, s)
}

// load calls a server's methods in turn, so many at a time.
func load(addr string, clients int) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := grpc_health_v1.NewHealthClient(conn)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
				if s, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{}); err == nil {
					for err == nil {
						_, err = s.Recv()
					}
				}
			}
		})
	}
	io.Copy(io.Discard, os.Stdin)
	cancel()
	all.Wait()
	return nil
}

// serve serves by gRPC's own transport, or by that of net/http.
func serve(s *grpc.Server, l net.Listener, behind bool) error {
	if !behind {
		return s.Serve(l)
	}
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return (&http.Server{Handler: s, Protocols: &p}).Serve(l)
}

func main() {
	log.SetFlags(0)
	to := flag.String("load", "", "call the methods of the server at this address")
	workers := flag.Uint("workers", 0, "have so many goroutines handle calls; 0: one for each call")
	behind := flag.Bool("behind", false, "serve behind net/http")
	flag.Parse()
	if *to != "" {
		if err := load(*to, 2); err != nil {
			log.Fatal(err)
		}
		return
	}
	s := grpc.NewServer(grpc.NumStreamWorkers(uint32(*workers)),
		grpc.ChainUnaryInterceptor(tagged, spun), grpc.ChainStreamInterceptor(taggedStream, spunStream))
	h := new(health)
	grpc_health_v1.RegisterHealthServer(s, h)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(h.calls.Load())
		}
	}()
	log.Fatal(serve(s, l, *behind))
}
