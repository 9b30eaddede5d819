// Command resilience is a service that asks one of four upstreams for each request. It
// serves the upstreams itself, on loopback ports of its own, and they fail by a script.
//
// The flag -guard says what stands between the service and its upstreams. The path says
// what is wrong with them:
//
//	GET /one     one of them answers 500 for 50 ms of every second
//	GET /slow    all of them take 300 ms for 50 ms of every second
//	GET /share   one in five answers of each is a 500 for 50 ms of every second
//
// A request whose call failed is not answered: its connection is cut, as tare counts that
// as an error.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/upstream"
)

func main() {
	guard := flag.String("guard", "none", "what stands before the `upstreams`: "+guards)
	flag.Parse()
	h, err := newService(*guard, script{begun: time.Now(), well: period / 2, bad: 50 * time.Millisecond})
	if err != nil {
		fmt.Fprintf(os.Stderr, "resilience: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h, Serve: (&http.Server{Handler: h}).Serve})
}

const (
	body    = `{"stock":7}`
	members = 4
)

// newService returns a service whose upstreams follow the script. Each path has upstreams
// and a guard of its own.
func newService(guard string, s script) (http.Handler, error) {
	mux := http.NewServeMux()
	for path, fault := range faults {
		hosts := make([]string, members)
		for i := range hosts {
			url, err := upstream.Start(fault(i, s))
			if err != nil {
				return nil, err
			}
			hosts[i] = url[len("http://"):]
		}
		call, err := newCaller(guard, hosts)
		if err != nil {
			return nil, err
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			stock, err := call(r.Context())
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			reply(w, stock)
		})
	}
	return mux, nil
}

func reply(w http.ResponseWriter, stock string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write([]byte(stock)) // fails when the client has gone
}
