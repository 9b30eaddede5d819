// Command bff answers for orders by HTTP and JSON that are written by hand: the standard
// library, types of its own, and no proto file. The arms bff-... of arms/rivals answer the
// same by what is made from one.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tarehq/tare/arms/arm"
)

func main() { arm.Main(arm.Options{Handler: newHandler()}) }

type order struct {
	ID       int32  `json:"id"`
	Customer string `json:"customer"`
	Items    []item `json:"items"`
}

type item struct {
	ID     int32  `json:"id"`
	Name   string `json:"name"`
	Price  int32  `json:"price"`
	Amount int32  `json:"amount"`
}

// find makes an order, as the service of the other arms does.
func find(id int32) *order {
	if id <= 0 {
		return nil
	}
	o := &order{ID: id, Customer: fmt.Sprintf("customer %d", id%100)}
	for i := range int32(8) {
		o.Items = append(o.Items, item{ID: 10 + i, Name: "espresso", Price: 1990 + i, Amount: 1 + i%3})
	}
	return o
}

func newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 32)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w, find(int32(id)))
	})
	mux.HandleFunc("POST /orders.v1.OrderService/FindOrder", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ ID int32 }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w, find(asked.ID))
	})
	return mux
}

func reply(w http.ResponseWriter, o *order) {
	if o == nil {
		http.Error(w, "there is no such order", http.StatusNotFound)
		return
	}
	body, err := json.Marshal(o)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // fails when the client has gone
}
