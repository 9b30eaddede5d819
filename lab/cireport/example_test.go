package cireport_test

import (
	"fmt"
	"os"

	"github.com/tarehq/tare/lab/cireport"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// A gate without a failed budget.
func ExampleBadge() {
	gate := comment.Source{Analysis: &verdict.Analysis{Manifest: record.Manifest{Study: study.Study{Name: "api"}}}}
	if err := cireport.Badge(os.Stdout, gate); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {
	//   "schemaVersion": 1,
	//   "label": "api",
	//   "message": "passed",
	//   "color": "brightgreen"
	// }
}
