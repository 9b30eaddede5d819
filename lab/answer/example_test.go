package answer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/study"
)

func ExampleAsk() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pong") }))
	defer srv.Close()
	for _, want := range []string{"pong", "ping"} {
		err := answer.Ask(context.Background(), srv.URL, study.Target{Path: "/", Verify: study.Verify{Contains: want}})
		fmt.Printf("%s: %v\n", want, err)
	}
	// Output:
	// pong: <nil>
	// ping: body "pong" does not contain "ping"
}
