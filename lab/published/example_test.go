package published_test

import (
	"fmt"

	"github.com/tarehq/tare/lab/published"
)

// A list has its sources, and the claims with their figures.
func Example() {
	all, err := published.Parse("claims.yaml", []byte(`
sources: [{id: P1, title: Of filters, subject: filters}]
claims:
  - id: P1.nesting
    kind: study
    study: nesting
    statement: Three layers cost 37.2 µs.
    values: [{layers: 3, us: 37.2}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(all[0].Source.Title, all[0].Study, all[0].Values[0]["us"])
	// Output: Of filters nesting 37.2
}
