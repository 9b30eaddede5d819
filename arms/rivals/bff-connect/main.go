//tare:module connectrpc.com/connect

// Command bff-connect answers for orders by connect-go: one handler for the Connect
// protocol, which is JSON or protobuf over plain HTTP, for gRPC and for gRPC-Web.
package main

import (
	"context"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/internal/orders"
	"github.com/tarehq/tare/arms/rivals/internal/orders/ordersconnect"
	"github.com/tarehq/tare/arms/upstream"
)

func main() {
	h := newHandler()
	arm.Main(arm.Options{Handler: h, Facts: func() map[string]string { return facts(h) }})
}

func newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(ordersconnect.NewOrderServiceHandler(service{}))
	return mux
}

type service struct{}

func (service) FindOrder(_ context.Context, r *orders.FindOrderRequest) (*orders.Order, error) {
	o := orders.Find(r.GetId())
	if o == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no order %d", r.GetId()))
	}
	return o, nil
}

func (service) PlaceOrder(_ context.Context, r *orders.PlaceOrderRequest) (*orders.Order, error) {
	return orders.Place(r), nil
}

// works is the fact of a part that does.
const works = "works"

// facts says what the generated client gets of a handler over loopback, by each protocol
// of HTTP/1.1 and each encoding.
func facts(h http.Handler) map[string]string {
	url, err := upstream.Start(h)
	if err != nil {
		return map[string]string{"client of Connect": err.Error()}
	}
	facts := map[string]string{}
	for name, options := range map[string][]connect.ClientOption{
		"client of Connect":          nil,
		"client of Connect in JSON":  {connect.WithProtoJSON()},
		"client of gRPC-Web":         {connect.WithGRPCWeb()},
		"client of gRPC-Web in JSON": {connect.WithGRPCWeb(), connect.WithProtoJSON()},
	} {
		facts[name] = works
		if err := call(url, options); err != nil {
			facts[name] = err.Error()
		}
	}
	return facts
}

// call asks for an order by the generated client.
func call(url string, options []connect.ClientOption) error {
	client := ordersconnect.NewOrderServiceClient(http.DefaultClient, url, options...)
	got, err := client.FindOrder(context.Background(), &orders.FindOrderRequest{Id: 7})
	if err == nil && !proto.Equal(got, orders.Find(7)) {
		err = fmt.Errorf("got the order %v", got)
	}
	return err
}
