//tare:module google.golang.org/grpc

// Command bff-grpc answers for orders by HTTP and JSON that are written by hand, and calls
// the service by gRPC over loopback, with the client that the proto file gives.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/internal/orders"
)

func main() {
	h, err := newHandler()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bff-grpc: %v\n", err)
		os.Exit(1)
	}
	arm.Main(arm.Options{Handler: h})
}

func newHandler() (http.Handler, error) {
	conn, err := orders.Start()
	if err != nil {
		return nil, err
	}
	s := service{orders.NewOrderServiceClient(conn)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 32)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.reply(w, r, int32(id))
	})
	mux.HandleFunc("POST /orders.v1.OrderService/FindOrder", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ ID int32 }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.reply(w, r, asked.ID)
	})
	return mux, nil
}

// service is called by gRPC.
type service struct{ client orders.OrderServiceClient }

func (s service) reply(w http.ResponseWriter, r *http.Request, id int32) {
	o, err := s.client.FindOrder(r.Context(), &orders.FindOrderRequest{Id: id})
	if status.Code(err) == codes.NotFound {
		http.Error(w, "there is no such order", http.StatusNotFound)
		return
	}
	var body []byte
	if err == nil {
		body, err = protojson.Marshal(o)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // fails when the client has gone
}
