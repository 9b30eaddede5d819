package headline_test

import (
	"fmt"

	"github.com/tarehq/tare/kube/operator/headline"
)

func Example() {
	line, err := headline.Of("LoadTest", []byte(`{"rate": 1000, "counts": {"scheduled": 2000, "answered": 2000, "status": {"2xx": 1998, "5xx": 2}}, "response": {"p50_ns": 1.2e6, "p99_ns": 3.4e6}}`))
	fmt.Println(line, err)
	// Output: 1,000/s, p50 1.20 ms, p99 3.40 ms, 0.1 % failed <nil>
}
