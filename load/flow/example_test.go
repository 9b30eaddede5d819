package flow_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tarehq/tare/load/flow"
	"github.com/tarehq/tare/load/flow/script"
)

// Five users ask for a list, take an id from it and ask for that.
func Example() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"id": 7}]`) }))
	defer srv.Close()
	f, err := script.Parse("example.yaml", []byte(`
users: {arrive: 100/s}
duration: 50ms
flows:
  - name: look
    steps:
      - {name: list, url: /items, take: {id: {json: "[0].id"}}}
      - {name: item, url: "/items/{{.id}}"}
`), srv.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := flow.Run(context.Background(), f, flow.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Sessions.Completed, "sessions,", res.Steps[1].Counts.Answered(), "answers to", res.Steps[1].Step)
	// Output: 5 sessions, 5 answers to item
}
