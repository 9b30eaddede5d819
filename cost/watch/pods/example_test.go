package pods_test

import (
	"fmt"

	"github.com/tarehq/tare/cost/watch/pods"
)

// A service has the same name in each of a workload's pods.
func ExampleContainer_Service() {
	for _, pod := range []string{"web-7d4b9c6f5-x2x4z", "web-7d4b9c6f5-9kzqt"} {
		fmt.Println(pods.Container{Namespace: "shop", Pod: pod, Name: "server"}.Service())
	}
	// Output:
	// shop/web/server
	// shop/web/server
}
