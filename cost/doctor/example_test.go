package doctor_test

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor"
)

// Evidence of one part is enough for the rules that ask for it; the others say
// that they were blind.
func Example() {
	waits := cost.Frame{Func: "example.org/shop.(*cart).ServeHTTP.func1", File: "/src/shop/cart.go", Decl: 20}
	e := &doctor.Evidence{
		Subject: "shop",
		Window:  cost.Window{Duration: 3 * time.Second, Requests: 3000},
		Births:  map[string]cost.Frame{waits.Func: {Func: "example.org/shop.(*cart).ServeHTTP", File: waits.File, Line: 20}},
	}
	for second, n := range []float64{10, 30, 50, 70} {
		e.Counts = append(e.Counts, doctor.Count{
			After:      time.Duration(second) * time.Second,
			Goroutines: []cost.Stack{{Frames: []cost.Frame{waits}, Count: n}},
		})
	}
	d := doctor.Examine(e)
	for _, f := range d.Findings {
		fmt.Printf("%s, %v: %s\n", f.Rule, f.Severity, f.Title)
		fmt.Println("price:", f.Price)
	}
	fmt.Println("blind:", len(d.Blind) > 0)
	// Output:
	// goroutines, serious: goroutines started at shop/cart.go:20 do not end: 60 more in 3 s
	// price: 0.0200 [0.0149, 0.0251] goroutines per request
	// blind: true
}
