package cost_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
)

func TestAddWalls(t *testing.T) {
	literal := func(decl int) cost.Frame {
		return cost.Frame{Func: "main.main.Spin.func1.1", File: "/src/shop/mw.go", Line: decl + 2, Decl: decl}
	}
	through := cost.Frame{Func: "net/http.HandlerFunc.ServeHTTP"}
	stacks := []cost.Stack{
		{Frames: []cost.Frame{literal(10), through}, Count: 1, Value: 100},
		{Frames: []cost.Frame{literal(30), through}, Count: 1, Value: 50},
	}
	owner := func(decl int) cost.Owner {
		o, _ := cost.Charge([]cost.Frame{literal(decl), through})
		return o
	}
	tests := []struct {
		name   string
		owner  cost.Owner
		where  string // of the item that has it
		length int    // of items
	}{
		{"first of two literals in one constructor", owner(10), "shop/mw.go:10", 2},
		{"second of two literals in one constructor", owner(30), "shop/mw.go:30", 2},
		{"never seen to run", owner(50), "shop/mw.go:50", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := cost.NewBill(stacks, nil, cost.Window{Duration: time.Second, Requests: 10})
			b.AddWalls([]cost.Wall{{Owner: tt.owner, Calls: 40, Seen: 20, Self: 2000, Total: 6000, P50: 90, P99: 300}},
				cost.Window{Duration: time.Second, Requests: 20})
			if got := len(b.Items); got != tt.length {
				t.Errorf("got %d items, want %d", got, tt.length)
			}
			for _, it := range b.Items {
				if it.Where != tt.where {
					if it.Wall != nil {
						t.Errorf("%s has %+v, want it at %s", it.Where, it.Wall, tt.where)
					}
					continue
				}
				if want := (cost.WallShare{Calls: 2, Self: 100, Total: 300, P50: 90, P99: 300}); it.Wall == nil || *it.Wall != want {
					t.Errorf("%s has %+v, want %+v", it.Where, it.Wall, want)
				}
			}
		})
	}
}

// TestWeightyWalls has an owner shown that was watched, however little it spends.
func TestWeightyWalls(t *testing.T) {
	busy := cost.Stack{Frames: []cost.Frame{{Func: "example.com/shop.busy"}}, Count: 1, Value: 1e6}
	b := cost.NewBill([]cost.Stack{busy}, nil, cost.Window{Requests: 1})
	light := cost.Owner{Kind: cost.Handler, Name: "mw.Light", File: "/src/mw/light.go", Decl: 3}
	b.AddWalls([]cost.Wall{{Owner: light, Calls: 1, Seen: 1, Self: 10, Total: 10}}, cost.Window{Requests: 1})
	items, others, _ := b.Weighty()
	if len(items) != 2 || others != 0 || items[1].Owner != light.Name {
		t.Errorf("got %+v and %d others, want both shown", items, others)
	}
}

// TestAddWallsAround has an owner be a middleware although what it calls was never
// sampled.
func TestAddWallsAround(t *testing.T) {
	stacks := []cost.Stack{{Frames: []cost.Frame{
		{Func: "example.com/shop/mw.Sign.func1", File: "/src/shop/mw/mw.go", Line: 9, Decl: 7},
		{Func: "net/http.HandlerFunc.ServeHTTP"},
	}, Count: 1, Value: 100}}
	owner, _ := cost.Charge(stacks[0].Frames)
	for _, around := range []bool{false, true} {
		b := cost.NewBill(stacks, nil, cost.Window{Requests: 1})
		b.AddWalls([]cost.Wall{{Owner: owner, Calls: 1, Seen: 1, Self: 10, Total: 10, Around: around}}, cost.Window{Requests: 1})
		want := cost.Handler
		if around {
			want = cost.Middleware
		}
		if len(b.Items) != 1 || b.Items[0].Kind != want.String() {
			t.Errorf("around %t: got %+v, want one %s", around, b.Items, want)
		}
	}
}

func TestAddWallsUnseen(t *testing.T) {
	b := &cost.Bill{}
	b.AddWalls([]cost.Wall{{Owner: cost.Owner{Name: "mw.Spin"}, Calls: 3}}, cost.Window{Requests: 3})
	if len(b.Items) != 0 {
		t.Errorf("got %+v, want no item of calls whose end was not seen", b.Items)
	}
}
