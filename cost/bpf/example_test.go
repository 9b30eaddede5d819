package bpf_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
)

// A running service is sampled for ten seconds, or until it ends, and its CPU is
// charged to its owners. This needs root, so it is compiled and not run.
func Example() {
	sampler, err := bpf.Start(bpf.Options{PID: 4711})
	if errors.Is(err, cost.ErrNotSupported) {
		fmt.Println("not on this system:", err)
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	select {
	case <-time.After(10 * time.Second):
	case <-sampler.Ended():
	}
	profile, err := sampler.Stop()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range profile.Warnings {
		fmt.Println("warning:", w)
	}
	bill := cost.NewBill(profile.Stacks, nil, cost.Window{Duration: profile.Duration})
	for _, item := range bill.Items {
		fmt.Printf("%s %s %s: %.0f ns a %s\n", item.Kind, item.Owner, item.Where, item.Self, bill.Per)
	}
}
