package load_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

func ExampleRun() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()

	res, err := load.Run(context.Background(), load.Options{
		Targets:  []load.Target{{URL: server.URL, Verify: load.Verify{Status: 200, Contains: "hello"}}},
		Schedule: pace.Constant(500), // open loop: a request every 2 ms
		Requests: 100,
	})
	if err != nil {
		panic(err)
	}
	c := res.Counts
	fmt.Println(c.Scheduled, "scheduled,", c.Answered(), "answered,", c.Unverified, "not as asked")
	// res.Response.Quantile(0.99) is the response time in nanoseconds that 99 %
	// of the requests kept.

	// Output: 100 scheduled, 100 answered, 0 not as asked
}
