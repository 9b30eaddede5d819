package past_test

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/watch/past"
)

// In the second interval nothing shows that auth calls another handler.
func ExampleChains_Bill() {
	auth := cost.Frame{Func: "shop/auth.(*Guard).ServeHTTP", File: "/src/shop/auth/auth.go", Decl: 10}
	orders := cost.Frame{Func: "shop/orders.(*List).ServeHTTP", File: "/src/shop/orders/orders.go", Decl: 20}
	serve := cost.Frame{Func: "net/http.serverHandler.ServeHTTP"}
	c := past.New()
	for _, frames := range [][]cost.Frame{{orders, auth, serve}, {auth, serve}} {
		b := c.Bill([]cost.Stack{{Frames: frames, Count: 1, Value: 50e6}}, cost.Window{Duration: 10 * time.Second})
		for _, it := range b.Items {
			fmt.Printf("%s, a %s: %.0f ms a second\n", it.Owner, it.Kind, it.Self/1e6)
		}
	}
	// Output:
	// orders.(*List).ServeHTTP, a handler: 5 ms a second
	// auth.(*Guard).ServeHTTP, a middleware: 0 ms a second
	// auth.(*Guard).ServeHTTP, a middleware: 5 ms a second
}
