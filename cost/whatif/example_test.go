package whatif_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tarehq/tare/cost/whatif"
)

// A middleware is slowed down by 20 µs a call, on and off, while somebody else loads
// the service. This needs root, so it is compiled and not run.
func Example() {
	if err := slowDown(context.Background(), 4711, "mw.Auth"); err != nil {
		fmt.Println(err)
	}
}

func slowDown(ctx context.Context, pid int, owner string) error {
	res, err := whatif.Run(ctx, whatif.Options{
		PID: pid, Owner: owner, Slow: 20 * time.Microsecond, For: time.Minute,
		Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if res == nil {
		return err
	}
	fmt.Printf("1 µs in %s costs a request %.2f µs of CPU (95 %% interval %.2f to %.2f)\n",
		res.Owner, res.PerTaken.Value, res.PerTaken.Low, res.PerTaken.High)
	if res.Saved != nil {
		fmt.Println("removing it would save", time.Duration(res.Saved.Value), "a request")
	}
	return err // why it ended early, if it did
}
