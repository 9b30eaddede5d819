package proc_test

import (
	"fmt"
	"os"

	"github.com/tarehq/tare/cost/doctor/proc"
)

func ExampleRead() {
	facts, err := proc.Read(os.Getpid())
	if err != nil {
		fmt.Println(err)
		return
	}
	procs, _ := facts.MaxProcs()
	fmt.Println(facts.CPUs >= 1, procs >= 1, facts.Threads >= 1)
	// Output: true true true
}
