// Package orders is one proto file and what one command makes of it: a gRPC service, its
// mapping to HTTP and JSON, typed clients, and an OpenAPI document.
//
// What is not generated is the service itself, which keeps no orders: each is made when it
// is asked for, so that arms differ in how they are called alone.
package orders

//go:generate sh generate.sh

import (
	"context"
	_ "embed"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

//go:embed orders.swagger.json
var openAPI []byte

// OpenAPI returns the document that describes the mapping to HTTP and JSON.
func OpenAPI() []byte { return openAPI }

// Find returns an order, always the same of a number; nil unless it is positive.
func Find(id int32) *Order {
	if id <= 0 {
		return nil
	}
	o := &Order{Id: id, Customer: fmt.Sprintf("customer %d", id%100)}
	for i := range int32(8) {
		o.Items = append(o.Items, &Item{Id: 10 + i, Name: "espresso", Price: 1990 + i, Amount: 1 + i%3})
	}
	return o
}

// Place returns the order with its number, always the same.
func Place(r *PlaceOrderRequest) *Order {
	return &Order{Id: 1, Customer: r.GetCustomer(), Items: r.GetItems()}
}

// Service answers the calls of gRPC. It is safe for concurrent use.
type Service struct {
	UnimplementedOrderServiceServer
}

// FindOrder returns an order, or the code NotFound.
func (Service) FindOrder(_ context.Context, r *FindOrderRequest) (*Order, error) {
	o := Find(r.GetId())
	if o == nil {
		return nil, status.Errorf(codes.NotFound, "there is no order %d", r.GetId())
	}
	return o, nil
}

// PlaceOrder takes an order.
func (Service) PlaceOrder(_ context.Context, r *PlaceOrderRequest) (*Order, error) {
	return Place(r), nil
}

// Start serves the service by gRPC on a loopback port, to the end of the program, and
// returns a connection to it.
func Start() (*grpc.ClientConn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the service: %w", err)
	}
	s := grpc.NewServer()
	RegisterOrderServiceServer(s, Service{})
	go func() { _ = s.Serve(l) }()
	return grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
}
