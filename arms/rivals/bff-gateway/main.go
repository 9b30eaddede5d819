//tare:module github.com/grpc-ecosystem/grpc-gateway/v2

// Command bff-gateway answers for orders by the HTTP and JSON that grpc-gateway maps to a
// gRPC service. It calls the service's methods itself; with -dial it calls the service by
// gRPC over loopback, as a gateway before other processes does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/internal/orders"
)

func main() {
	dial := flag.Bool("dial", false, "call the service by gRPC")
	flag.Parse()
	g, err := newGateway(*dial)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bff-gateway: %v\n", err)
		os.Exit(1)
	}
	arm.Main(arm.Options{Handler: g.mux, Facts: g.facts})
}

// gateway maps HTTP and JSON to the service.
type gateway struct {
	mux  *runtime.ServeMux
	conn *grpc.ClientConn // nil: methods are called in this process
}

func newGateway(dial bool) (*gateway, error) {
	g := &gateway{mux: runtime.NewServeMux()}
	if !dial {
		return g, orders.RegisterOrderServiceHandlerServer(context.Background(), g.mux, orders.Service{})
	}
	conn, err := orders.Start()
	if err != nil {
		return nil, err
	}
	g.conn = conn
	return g, orders.RegisterOrderServiceHandler(context.Background(), g.mux, conn)
}

// facts says what works of that which is generated, each part tried when it is asked for.
func (g *gateway) facts() map[string]string {
	facts := map[string]string{"HTTP and JSON": tell(g.tryJSON()), "OpenAPI": tell(checkOpenAPI(orders.OpenAPI()))}
	if g.conn != nil {
		facts["client of gRPC"] = tell(g.tryGRPC())
	}
	return facts
}

// works is the fact of a part that does.
const works = "works"

func tell(err error) string {
	if err != nil {
		return err.Error()
	}
	return works
}

// tryGRPC calls the service by its generated client.
func (g *gateway) tryGRPC() error {
	got, err := orders.NewOrderServiceClient(g.conn).FindOrder(context.Background(), &orders.FindOrderRequest{Id: 7})
	return expect(got, err)
}

// tryJSON asks the mapping.
func (g *gateway) tryJSON() error {
	w, got := httptest.NewRecorder(), new(orders.Order)
	g.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/orders/7", nil))
	return expect(got, protojson.Unmarshal(w.Body.Bytes(), got))
}

func expect(got *orders.Order, err error) error {
	if err == nil && !proto.Equal(got, orders.Find(7)) {
		err = fmt.Errorf("got the order %v", got)
	}
	return err
}

// checkOpenAPI finds each method's mapping in the document.
func checkOpenAPI(document []byte) error {
	var d struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(document, &d); err != nil {
		return err
	}
	services := orders.File_orders_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			method, path := mapping(methods.Get(j))
			if _, ok := d.Paths[path][method]; !ok {
				return fmt.Errorf("%s of %s is not in the document", path, methods.Get(j).FullName())
			}
		}
	}
	return nil
}

// mapping is the HTTP method, in lower case, and the path that a method is mapped to.
func mapping(m protoreflect.MethodDescriptor) (method, path string) {
	rule, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule) // nil: "" and ""
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return strings.ToLower(http.MethodGet), p.Get
	case *annotations.HttpRule_Post:
		return strings.ToLower(http.MethodPost), p.Post
	}
	return "", ""
}
