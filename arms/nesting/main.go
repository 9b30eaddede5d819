// Command nesting is an HTTP service behind a number of nested middlewares,
// for measuring what each costs.
//
//	none       no middleware
//	one        auth
//	two        auth, recovery
//	three      auth, metrics, recovery
//	five       request id, access log, auth, metrics, recovery
//	flattened  what three do and the answer, in one ServeHTTP that calls no other
//	merged     what three do, written as one middleware
//
// The outermost comes first. Each is written the way services write theirs: a
// function that takes a handler and returns a closure, which knows nothing of
// the others. GET /api/v1/users answers a fixed body, to bearers of the token
// "tare" alone wherever there is auth. Metrics are read at GET /metrics, which
// no middleware surrounds. The same runs on any of the servers of arms/serve/engines.
package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/serve/engines"
)

const users = `{"users":[` +
	`{"id":1,"name":"Ada","email":"ada@example.com"},` +
	`{"id":2,"name":"Grace","email":"grace@example.com"},` +
	`{"id":3,"name":"Edsger","email":"edsger@example.com"}` +
	`],"total":3}`

func main() {
	layers := flag.String("layers", "none", "`middlewares` around the handler: "+names)
	server := engines.Flag(engines.NetHTTP)
	flag.Parse()
	s := &service{
		token:   "tare",
		user:    &user{ID: 1, Name: "Ada"},
		metrics: newMetrics(),
		access:  slog.New(slog.NewJSONHandler(io.Discard, nil)),
		errors:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	h, err := s.wrap(*layers, listUsers())
	if err != nil {
		fmt.Fprintf(os.Stderr, "nesting: %v\n", err)
		os.Exit(2)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/users", h)
	mux.Handle("GET /metrics", s.metrics)
	arm.Main(arm.Options{Handler: mux, Serve: server.Run(mux)})
}

// listUsers answers with the body as bytes: a string would be copied wherever
// a layer's writer has no WriteString, and that cost is not the nesting's.
func listUsers() http.HandlerFunc {
	body := []byte(users)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(body) // fails when the client has gone
	}
}
