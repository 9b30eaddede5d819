package main

import (
	"testing"

	"github.com/tarehq/tare/arms/rivals/internal/orders/orderstest"
)

func TestHandler(t *testing.T) {
	h, err := newHandler()
	if err != nil {
		t.Fatal(err)
	}
	orderstest.Check(t, h, orderstest.Get)
	orderstest.Check(t, h, orderstest.Call)
}
