package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
)

// wire counts the bytes of connections, both ways.
type wire struct{ bytes atomic.Int64 }

func (w *wire) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &counted{conn, w}, nil
}

type counted struct {
	net.Conn
	w *wire
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.w.bytes.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.w.bytes.Add(int64(n))
	return n, err
}

// exporters send by OTLP over one connection, and are otherwise at their defaults.
type exporters struct{ conn *grpc.ClientConn }

func (w *wire) dialCollector(addr string, compressed bool) (*exporters, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return w.dial(ctx, "tcp", addr) }),
	}
	if compressed {
		options = append(options, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		return nil, fmt.Errorf("dialling the collector: %w", err)
	}
	return &exporters{conn}, nil
}

// named is what the telemetry says of the service.
func named() *resource.Resource {
	return resource.NewSchemaless(attribute.String("service.name", "shop"), attribute.String("service.instance.id", "shop-1"))
}

func (e *exporters) tracers(s sdktrace.Sampler) (*sdktrace.TracerProvider, error) {
	x, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithGRPCConn(e.conn))
	if err != nil {
		return nil, err
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(x), sdktrace.WithSampler(s), sdktrace.WithResource(named())), nil
}

func (e *exporters) meters() (*sdkmetric.MeterProvider, error) {
	x, err := otlpmetricgrpc.New(context.Background(), otlpmetricgrpc.WithGRPCConn(e.conn))
	if err != nil {
		return nil, err
	}
	reader := sdkmetric.NewPeriodicReader(x, sdkmetric.WithInterval(period))
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(named())), nil
}

// logger returns a logger of log/slog, which finds the span in the context, and what sends
// the lines that wait.
func (e *exporters) logger() (*slog.Logger, func(context.Context) error, error) {
	x, err := otlploggrpc.New(context.Background(), otlploggrpc.WithGRPCConn(e.conn))
	if err != nil {
		return nil, nil, err
	}
	p := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(x)), sdklog.WithResource(named()))
	return otelslog.NewLogger("shop", otelslog.WithLoggerProvider(p)), p.ForceFlush, nil
}
