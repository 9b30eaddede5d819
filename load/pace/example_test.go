package pace_test

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/load/pace"
)

// Two workers share a thousand requests a second.
func Example() {
	s := pace.Constant(1000)
	for k := range 2 {
		c := s.Cursor(k, 2)
		first, _ := c.Next()
		second, _ := c.Next()
		fmt.Println(first, second)
	}
	// Output:
	// 0s 2ms
	// 1ms 3ms
}

func ExampleParse() {
	s, err := pace.Parse("ramp:100-500/10s", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.RateAt(5*time.Second), s.Count(10*time.Second))
	// Output: 300 3000
}
