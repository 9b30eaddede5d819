package main

import (
	"net/http"
	"testing"

	"github.com/tarehq/tare/arms/rivals/internal/orders/orderstest"
)

func TestHandler(t *testing.T) {
	h := newHandler()
	orderstest.Check(t, h, orderstest.Call)
	got := facts(h)
	for name, said := range got {
		if said != works {
			t.Errorf("%s: %s", name, said)
		}
	}
	if len(got) != 4 {
		t.Errorf("got %d facts, want 4", len(got))
	}
	for name, said := range facts(http.NotFoundHandler()) {
		if said == works {
			t.Errorf("%s works where there is no service", name)
		}
	}
}
