package cost_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost"
)

// TestWeightyMiddleware shows a middleware that spends next to nothing, and no such handler.
func TestWeightyMiddleware(t *testing.T) {
	b := &cost.Bill{CPU: 1e6, Items: []cost.Item{
		{Kind: "handler", Owner: "shop.list", Self: 1e6},
		{Kind: "middleware", Owner: "mw.Tiny", Self: 1},
		{Kind: "middleware", Owner: "mw.Unseen"},
		{Kind: "handler", Owner: "shop.rare", Self: 1},
	}}
	items, others, rest := b.Weighty()
	if len(items) != 3 || items[2].Owner != "mw.Unseen" || others != 1 || rest != 1 {
		t.Errorf("got %+v and %d others of %g, want all but shop.rare", items, others, rest)
	}
}

// TestBillJSON has memory where it was measured, and no zeros where it was not.
func TestBillJSON(t *testing.T) {
	stacks := []cost.Stack{{Frames: []cost.Frame{{Func: "example.com/shop.busy"}}, Count: 1, Value: 1e6}}
	for allocs, want := range map[bool]int{false: 0, true: 2} { // of all, and of the owner
		b := cost.NewBill(stacks, nil, cost.Window{Requests: 1})
		if allocs {
			b = cost.NewBill(stacks, stacks, cost.Window{Requests: 1})
		}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{`"bytes":`, `"objects":`} {
			if got := strings.Count(string(text), field); got != want {
				t.Errorf("allocations measured: %t: got %s %d times, want %d: %s", allocs, field, got, want, text)
			}
		}
	}
}
