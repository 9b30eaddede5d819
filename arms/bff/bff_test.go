package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHandler(t *testing.T) {
	for request, want := range map[string]struct {
		status int
		body   string // that the answer's begins with
	}{
		"GET /v1/orders/7 ": {http.StatusOK, `{"id":7,"customer":"customer 7","items":[{"id":10,"name":"espresso","price":1990,"amount":1},{"id":11,`},
		`POST /orders.v1.OrderService/FindOrder {"id":7}`:  {http.StatusOK, `{"id":7,"customer":"customer 7","items":[{"id":10,`},
		"GET /v1/orders/-7 ":                               {http.StatusNotFound, "there is no such order"},
		`POST /orders.v1.OrderService/FindOrder {"id":-7}`: {http.StatusNotFound, "there is no such order"},
		"GET /v1/orders/x ":                                {http.StatusBadRequest, ""},
		`POST /orders.v1.OrderService/FindOrder {`:         {http.StatusBadRequest, ""},
	} {
		parts := strings.SplitN(request, " ", 3)
		w := httptest.NewRecorder()
		newHandler().ServeHTTP(w, httptest.NewRequest(parts[0], parts[1], strings.NewReader(parts[2])))
		if w.Code != want.status || !strings.HasPrefix(w.Body.String(), want.body) {
			t.Errorf("%s: got %d, %s; want %d, %s…", request, w.Code, w.Body, want.status, want.body)
		}
		if kind := w.Header().Get("Content-Type"); w.Code == http.StatusOK && kind != "application/json" {
			t.Errorf("%s: got the type %s, want application/json", request, kind)
		}
	}
}
