package tally_test

import (
	"fmt"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/tally"
)

func ExampleOf() {
	t := tally.Of([]record.Trial{
		{Block: -1}, // the pilot
		{Block: 0, Arm: "none"},
		{Block: 0, Arm: "three", Invalid: []string{"achieved 9000 requests a second of 10000 offered"}},
		{Block: 1, Arm: "three", Invalid: []string{"achieved 9100 requests a second of 10000 offered"}},
	})
	fmt.Println(t.Valid, "of", t.Total, "and the pilot's", t.Pilot)
	fmt.Println(t.Refusal())
	// Output:
	// 1 of 3 and the pilot's 1
	// 2 of 3 trials do not count, most often because achieved 9000 requests a second of 10000 offered
}
