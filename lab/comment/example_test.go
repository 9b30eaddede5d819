package comment_test

import (
	"fmt"

	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

func ExampleWorst() {
	fmt.Println(comment.Worst([]verdict.Gated{{Result: bound.Held}, {Result: bound.Inconclusive}, {Result: bound.Held}}))
	fmt.Println(comment.Worst(nil))
	// Output:
	// inconclusive
	// held
}
