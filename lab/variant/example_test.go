package variant_test

import (
	"fmt"

	"github.com/tarehq/tare/lab/variant"
)

func ExampleParseAll() {
	all, err := variant.ParseAll([]string{"pgo", "go1.25.4", "gin@v1.9.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range all {
		fmt.Println(v.Kind, v)
	}
	// Output:
	// pgo pgo
	// toolchain go1.25.4
	// requirement gin@v1.9.1
}
