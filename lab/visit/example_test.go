package visit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tarehq/tare/lab/visit"
)

// A thousand requests a second were to be sent. The third was sent late, as a generator does
// that waits for the answer before it: its true response time counts from when it was due.
func ExampleResponses() {
	dir, err := os.MkdirTemp("", "visit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, visit.File)
	const log = `arrival_unix_ns,departure_unix_ns
1000000000,1000100000
1001000000,1001100000
1012000000,1012100000
`
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	visits, err := visit.Read(file, time.Unix(1, 0))
	if err != nil {
		fmt.Println(err)
		return
	}
	h := visit.Responses(visits, 1000)
	fmt.Println(h.Count(), "requests, from", time.Duration(h.Min()), "to", time.Duration(h.Max()))
	// Output: 3 requests, from 100µs to 10.1ms
}
