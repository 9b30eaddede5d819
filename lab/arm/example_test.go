package arm_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// Build the control, start it, wait for its first answer, and read what it has
// used by then.
func Example() {
	ctx := context.Background()
	program, err := (&arm.Builder{}).Build(ctx, study.Arm{Name: "net/http", Go: "./arms/nethttp"})
	if err != nil {
		log.Fatal(err)
	}
	proc, err := arm.Start(ctx, *program, arm.StartOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer proc.Stop(ctx)

	startup, err := proc.Ready(ctx, func(ctx context.Context) error {
		res, err := http.Get(proc.URL() + "/ping")
		if err != nil {
			return err
		}
		return res.Body.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	used, err := proc.Usage(false)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ready after %v with %v of CPU and %d bytes\n", startup.Round(time.Millisecond), used.CPU, used.RSS)
}
