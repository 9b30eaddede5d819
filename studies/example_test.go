package studies_test

import (
	"fmt"

	"github.com/tarehq/tare/studies"
)

func Example() {
	s, err := studies.Named("nesting")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Title)
	for _, a := range s.QuickForm().Arms {
		fmt.Println(a.Name)
	}
	// Output:
	// What nested middleware costs
	// none
	// three
	// flattened
}
