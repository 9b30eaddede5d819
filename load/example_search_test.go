package load_test

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

func ExampleThreshold_Holds() {
	th, err := load.ParseThreshold("p90 < 50ms")
	if err != nil {
		panic(err)
	}
	// Most answers are quick, but one request in five is not answered.
	r := &load.Result{Elapsed: time.Second, Response: hist.New()}
	r.Response.RecordN(int64(time.Millisecond), 80)
	r.Counts.Scheduled, r.Counts.Status[2], r.Counts.Timeout = 100, 80, 20

	holds, value, err := th.Holds(r)
	fmt.Println(th, holds, value, err)
	// Output: p90<50ms false no answer <nil>
}
