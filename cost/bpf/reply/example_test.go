package reply_test

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/cost/bpf/reply"
)

// A service's answers are timed for ten seconds, as its own clients wait for them.
// This needs root, so it is compiled and not run.
func Example() {
	if err := watch(4711); err != nil {
		fmt.Println(err)
	}
}

func watch(pid int) error {
	w, err := reply.Start(pid)
	if err != nil {
		return err
	}
	defer w.Close()
	time.Sleep(10 * time.Second)
	seen, err := w.Read()
	if err != nil {
		return err
	}
	for _, b := range seen.Times {
		fmt.Printf("%d took %v to %v\n", b.Count, b.From, b.Below)
	}
	fmt.Printf("%d are under way\n", seen.Waiting)
	return nil
}
