package jobs_test

import (
	"context"
	"fmt"

	"github.com/tarehq/tare/kube/jobs"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A load by two pods. In a cluster, Look reports Pending, Running and Done, and Fetch has the
// outcome.
func Example() {
	ctx, c := context.Background(), fake.NewClientBuilder().Build()
	s := jobs.Spec{
		Name: "try", Namespace: "shop", Image: "ghcr.io/tarehq/tare:0.9.0", Agents: 2,
		Args: []string{"load", "--json", "-r", "100", "http://orders.shop/"}, Targets: []string{"http://orders.shop/"},
	}
	if err := jobs.Start(ctx, c, s); err != nil {
		fmt.Println(err)
		return
	}
	state, err := jobs.Look(ctx, c, "shop", "try")
	fmt.Println(state.Phase, state.Agents, err)
	fmt.Println(jobs.Remove(ctx, c, "shop", "try"))
	// Output:
	// Pending 2 <nil>
	// <nil>
}
