package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/tarehq/tare/arms/rivals/internal/orders"
	"github.com/tarehq/tare/arms/rivals/internal/orders/orderstest"
)

func TestGateway(t *testing.T) {
	for dial, want := range map[bool]map[string]string{
		false: {"HTTP and JSON": works, "OpenAPI": works},
		true:  {"HTTP and JSON": works, "OpenAPI": works, "client of gRPC": works},
	} {
		g, err := newGateway(dial)
		if err != nil {
			t.Fatal(err)
		}
		orderstest.Check(t, g.mux, orderstest.Get)
		orderstest.Check(t, g.mux, orderstest.Call)
		if got := g.facts(); !maps.Equal(got, want) {
			t.Errorf("dial %t: got %v, want %v", dial, got, want)
		}
	}
}

// A document without one of the methods is found out, and so is a service that is gone.
func TestFactsTellFailures(t *testing.T) {
	less := strings.Replace(string(orders.OpenAPI()), `"/v1/orders/{id}"`, `"/v1/order/{id}"`, 1)
	if err := checkOpenAPI([]byte(less)); err == nil || !strings.Contains(err.Error(), "/v1/orders/{id}") {
		t.Errorf("got %v, want the path that is missing", err)
	}
	g, err := newGateway(true)
	if err != nil {
		t.Fatal(err)
	}
	g.conn.Close()
	if got := g.facts(); got["client of gRPC"] == works || got["HTTP and JSON"] == works {
		t.Errorf("got %v of a closed connection", got)
	}
}
