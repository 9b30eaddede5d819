package probe_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
)

// Every call of one middleware is watched for five seconds, after a look at what
// that will cost the service. This needs root, so it is compiled and not run.
func Example() {
	if err := watch(context.Background(), 4711, "auth"); err != nil {
		fmt.Println(err)
	}
}

func watch(ctx context.Context, pid int, name string) error {
	target, err := probe.Open(pid)
	if err != nil {
		return err
	}
	defer target.Close()
	price, err := probe.Calibrate(ctx)
	if err != nil {
		return err
	}
	owners, err := target.Owners(ctx, []string{name}, time.Second)
	if err != nil {
		return err
	}
	w, err := target.NewWatch(owners, price)
	if err != nil {
		return err
	}
	defer w.Close()
	forecast, err := w.Look(ctx, time.Second)
	if err != nil {
		return err
	}
	if forecast.Share > 0.05 {
		return fmt.Errorf("watching would take %.0f %% of the process's CPU", 100*forecast.Share)
	}
	m, err := w.Run(ctx, probe.Options{For: 5 * time.Second})
	if err != nil {
		return err
	}
	for _, wall := range m.Walls {
		fmt.Printf("%s: %.0f calls, half of them within %v\n", wall.Owner.Name, wall.Calls, time.Duration(wall.P50))
	}
	return nil
}

// A middleware is made 20 µs slower for two seconds, to see what that does to the
// service. This needs root, so it is compiled and not run.
func ExampleBrake() {
	if err := slowDown(context.Background(), 4711, "auth"); err != nil {
		fmt.Println(err)
	}
}

func slowDown(ctx context.Context, pid int, name string) error {
	target, err := probe.Open(pid)
	if err != nil {
		return err
	}
	defer target.Close()
	owners, err := target.Owners(ctx, []string{name}, time.Second)
	if err != nil {
		return err
	}
	if len(owners) == 0 || owners[0].Reason != "" {
		return fmt.Errorf("%s cannot be slowed down", name)
	}
	brake, err := target.NewBrake(owners[0])
	if err != nil {
		return err
	}
	defer brake.Close()
	before, err := brake.Read()
	if err != nil {
		return err
	}
	if err := brake.On(20*time.Microsecond, 4*time.Second); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	if err := brake.Off(); err != nil {
		return err
	}
	after, err := brake.Read()
	if err != nil {
		return err
	}
	d := after.Since(before)
	fmt.Printf("%d calls were slowed down, by %v in all\n", d.Calls, d.Taken)
	return nil
}
