package chart_test

import (
	"fmt"
	"strings"

	"github.com/tarehq/tare/kube/chart"
)

func Example() {
	fmt.Println(strings.Count(chart.Manifests(""), "\nkind: CustomResourceDefinition\n"), "kinds of resources")
	// Output: 2 kinds of resources
}
