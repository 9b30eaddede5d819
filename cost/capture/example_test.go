package capture_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/load"
)

// A process is looked at for ten seconds while it answers 16 connections, and each owner's
// CPU a request is printed. That takes a service, so it is compiled and not run.
func Example() {
	if err := printOwners(context.Background(), 4711, "http://localhost:8080/users"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func printOwners(ctx context.Context, pid int, url string) error {
	target, err := capture.Service{PID: pid}.Find(ctx, capture.Cheapest)
	if err != nil {
		return err
	}
	c, err := capture.Run(ctx, target, capture.Options{
		For:  10 * time.Second,
		Load: &load.Options{Targets: []load.Target{{URL: url}}, Connections: 16},
	})
	if err != nil {
		return err
	}
	for _, item := range c.Bill().Items {
		fmt.Println(item.Owner, time.Duration(item.Self))
	}
	return c.LoadErr
}
