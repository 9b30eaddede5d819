package clienttest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tarehq/tare/serve/client/clienttest"
)

// Here the test's place is taken by a recorder; a test passes its own t.
func ExampleCheckBodies() {
	t := new(recorder)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pong") }))
	defer srv.Close()
	client := &http.Client{Transport: clienttest.CheckBodies(t, http.DefaultTransport)}
	res, err := client.Get(srv.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	res.Body.Close() // unread: the next request needs a new connection
	for _, f := range t.cleanups {
		f()
	}
	fmt.Println("failures:", len(t.errors))
	// Output: failures: 1
}
