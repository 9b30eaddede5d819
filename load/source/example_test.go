package source_test

import (
	"fmt"

	"github.com/tarehq/tare/load/source"
)

func ExampleParseList() {
	requests, err := source.ParseList("shop.txt", `
# what a shop is asked for
/orders/7 3
POST /orders
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range requests {
		fmt.Printf("%s: %q %s, weight %d\n", r.At, r.Method, r.Path, r.Weight)
	}
	_, err = source.ParseList("shop.txt", "/orders many")
	fmt.Println(err)
	// Output:
	// shop.txt:3: "" /orders/7, weight 3
	// shop.txt:4: "POST" /orders, weight 0
	// shop.txt:1: weight "many": want a whole number of at least 1
}
