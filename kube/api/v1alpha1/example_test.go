package v1alpha1_test

import (
	"fmt"

	"github.com/tarehq/tare/kube/api/v1alpha1"
)

func Example() {
	test := v1alpha1.LoadTest{Spec: v1alpha1.LoadTestSpec{URL: "http://orders:8080/", Rate: "1000", FailIf: []string{"p99>50ms"}}}
	args, _ := test.Command()
	fmt.Println(args)
	// Output: [load --json --rate=1000 --fail-if=p99>50ms http://orders:8080/]
}
