package symptom_test

import (
	"fmt"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
)

func Example() {
	read := []cost.Frame{{Func: "net/http.(*body).Read"}, {Func: "io.ReadAll"}, {Func: "example.org/shop.add"}}
	bounded := []cost.Frame{{Func: "net/http.(*body).Read"}, {Func: "net/http.(*maxBytesReader).Read"}, {Func: "io.ReadAll"}, {Func: "example.org/shop.add"}}
	fmt.Println(symptom.Swallowing(read), symptom.Swallowing(bounded))
	// Output: 1 -1
}
