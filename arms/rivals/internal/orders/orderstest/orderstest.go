// Package orderstest asks arms for orders by HTTP and JSON.
package orderstest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tarehq/tare/arms/rivals/internal/orders"
)

// Requests of an order, by its number.
const (
	Get  = "GET /v1/orders/%d"
	Call = `POST /orders.v1.OrderService/FindOrder {"id":%d}`
)

// Check asks for the order 7, and for one that there is not.
func Check(t *testing.T, h http.Handler, request string) {
	t.Helper()
	got, w := new(orders.Order), ask(h, fmt.Sprintf(request, 7))
	err := protojson.Unmarshal(w.Body.Bytes(), got)
	if err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !proto.Equal(got, orders.Find(7)) {
		t.Errorf(request+": got %d, %v, %s, %v; want the order", 7, w.Code, w.Header(), w.Body, err)
	}
	if w := ask(h, fmt.Sprintf(request, -7)); w.Code != http.StatusNotFound {
		t.Errorf(request+": got %d, %s; want 404", -7, w.Code, w.Body)
	}
}

// ask sends a request, which is method, path and body.
func ask(h http.Handler, request string) *httptest.ResponseRecorder {
	parts := append(strings.SplitN(request, " ", 3), "")
	r := httptest.NewRequest(parts[0], parts[1], strings.NewReader(parts[2]))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
