package script_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/tarehq/tare/load/flow/script"
)

// A user asks for a list, thinks, and asks for an item of it. Package flow would send the
// requests; here they are only built.
func ExampleParse() {
	f, err := script.Parse("shop.yaml", []byte(`
users: {arrive: 100/s}
duration: 1m
flows:
  - name: look
    steps:
      - {name: list, url: /items}
      - think: 2s
      - {name: item, url: /items/7, header: {Accept: application/json}}
`), "http://localhost:8080")
	if err != nil {
		fmt.Println(err)
		return
	}
	known := f.Know()
	user := script.Walk{Program: f.Programs()[0]}
	rng := rand.New(rand.NewPCG(1, 2))
	for {
		q, think, more := user.Next(known, rng)
		if !more {
			return
		}
		if q == nil {
			fmt.Println("thinks for", think)
			continue
		}
		req, err := q.Build(known)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(f.Sent()[q.Step].Name, req.Method, req.URL)
	}
	// Output:
	// list GET http://localhost:8080/items
	// thinks for 2s
	// item GET http://localhost:8080/items/7
}
