package rivals_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy"
)

// calls is a service of gRPC's own interoperability tests.
type calls struct {
	testpb.UnimplementedTestServiceServer
	gone chan struct{} // closed once a call that waits sees that its client has gone
}

// UnaryCall echoes, with metadata before and after, or fails as it is asked to.
func (c *calls) UnaryCall(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	sent, _ := metadata.FromIncomingContext(ctx)
	if err := grpc.SetTrailer(ctx, metadata.Pairs("x-after-bin", "\x00\xff", "x-via", sent.Get("via")[0])); err != nil {
		return nil, err
	}
	if s := r.GetResponseStatus(); s != nil {
		return nil, status.Error(codes.Code(s.GetCode()), s.GetMessage())
	}
	return &testpb.SimpleResponse{Payload: r.GetPayload()}, nil
}

// StreamingInputCall answers with how much came.
func (c *calls) StreamingInputCall(s grpc.ClientStreamingServer[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse]) error {
	n := 0
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return s.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: int32(n)})
		}
		if err != nil {
			return err
		}
		n += len(r.GetPayload().GetBody())
	}
}

// FullDuplexCall echoes each message as it comes, after its header.
func (c *calls) FullDuplexCall(s grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse]) error {
	if err := s.SendHeader(metadata.Pairs("x-before", "yes")); err != nil {
		return err
	}
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if s.Context().Err() != nil {
				close(c.gone)
			}
			return err
		}
		if err := s.Send(&testpb.StreamingOutputCallResponse{Payload: r.GetPayload()}); err != nil {
			return err
		}
	}
}

// throughProxy returns a client whose calls go through a proxy to the service.
func throughProxy(t *testing.T, service *calls) testpb.TestServiceClient {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	upstream := grpc.NewServer()
	testpb.RegisterTestServiceServer(upstream, service)
	behind := listen()
	go func() { _ = upstream.Serve(behind) }()
	t.Cleanup(upstream.Stop)
	pool, err := proxy.NewPool(proxy.PoolOptions{Scheme: proxy.UnencryptedHTTP2, Servers: []proxy.Server{{Address: behind.Addr().String()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	h, err := proxy.New(proxy.Options{Pool: pool, Name: "edge-1"})
	if err != nil {
		t.Fatal(err)
	}
	edge := &serve.Server{}
	edge.Handler, edge.Protocols = h, new(http.Protocols)
	edge.Protocols.SetUnencryptedHTTP2(true)
	before := listen()
	go func() { _ = edge.Serve(before) }()
	t.Cleanup(func() { edge.Close() })
	conn, err := grpc.NewClient(before.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return testpb.NewTestServiceClient(conn)
}

// TestGRPCThroughProxy has calls of grpc-go, of every kind, go through serve/proxy as they
// would without it.
func TestGRPCThroughProxy(t *testing.T) {
	service := &calls{gone: make(chan struct{})}
	client := throughProxy(t, service)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	large := bytes.Repeat([]byte("gRPC"), 300_000)
	var trailer metadata.MD
	r, err := client.UnaryCall(ctx, &testpb.SimpleRequest{Payload: &testpb.Payload{Body: large}}, grpc.Trailer(&trailer))
	if err != nil || !bytes.Equal(r.GetPayload().GetBody(), large) {
		t.Errorf("a call: %d bytes, %v", len(r.GetPayload().GetBody()), err)
	}
	if got := trailer.Get("x-after-bin"); len(got) != 1 || got[0] != "\x00\xff" || trailer.Get("x-via")[0] != "2.0 edge-1" {
		t.Errorf("got the trailer %v", trailer)
	}

	for _, want := range []*testpb.EchoStatus{{Code: int32(codes.NotFound), Message: "there is no such order"}, {Code: int32(codes.Unavailable), Message: "später, % \t"}} {
		_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{ResponseStatus: want})
		if s := status.Convert(err); s.Code() != codes.Code(want.GetCode()) || s.Message() != want.GetMessage() {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if _, err := client.UnimplementedCall(ctx, &testpb.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a call that there is not: %v", err)
	}

	up, err := client.StreamingInputCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := up.Send(&testpb.StreamingInputCallRequest{Payload: &testpb.Payload{Body: make([]byte, 10_000)}}); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err := up.CloseAndRecv(); err != nil || sum.GetAggregatedPayloadSize() != 100_000 {
		t.Errorf("a stream up: %v, %v", sum, err)
	}

	both, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if header, err := both.Header(); err != nil || header.Get("x-before")[0] != "yes" {
		t.Fatalf("before anything was sent: %v, %v", header, err)
	}
	for _, size := range []int{1, 100_000, 0, 7} {
		if err := both.Send(&testpb.StreamingOutputCallRequest{Payload: &testpb.Payload{Body: make([]byte, size)}}); err != nil {
			t.Fatal(err)
		}
		if got, err := both.Recv(); err != nil || len(got.GetPayload().GetBody()) != size {
			t.Fatalf("a stream both ways: %v", err)
		}
	}
	if err := both.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}

	inner, leave := context.WithCancel(ctx)
	left, err := client.FullDuplexCall(inner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := left.Header(); err != nil {
		t.Fatal(err)
	}
	leave()
	select {
	case <-service.gone:
	case <-ctx.Done():
		t.Error("the service did not see that the client has gone")
	}
	short, end := context.WithTimeout(ctx, 100*time.Millisecond)
	defer end()
	late, err := client.StreamingInputCall(short)
	if err != nil {
		t.Fatal(err)
	}
	if err := late.RecvMsg(&testpb.StreamingInputCallResponse{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a deadline: %v", err)
	}
}

// TestGRPCHealth has a server be asked by gRPC's health protocol, and left alone while it
// says that it does not serve.
func TestGRPCHealth(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, states := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(s, states)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	pool, err := proxy.NewPool(proxy.PoolOptions{
		Scheme: proxy.UnencryptedHTTP2, Servers: []proxy.Server{{Address: l.Addr().String()}},
		Check: proxy.Check{GRPC: true, Interval: 10 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, state := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_NOT_SERVING, healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_UNKNOWN} {
		states.SetServingStatus("", state)
		want := state == healthpb.HealthCheckResponse_SERVING
		for n := 0; pool.Status()[0].Healthy != want; n++ {
			if n == 1000 {
				t.Fatalf("the server says %s, and is taken for the opposite", state)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
