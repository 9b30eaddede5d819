// Command contexts answers behind five layers that each keep a value for the
// request, in one way or another, and a step that needs the request's context.
//
//	GET /now   answers at once
//	GET /held  answers after half a second, so that many requests are held at a time
//	GET /long  answers after 1.6 seconds
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tarehq/tare/arms/arm"
)

func main() {
	by := flag.String("by", "argument", "how `values` travel: "+names)
	flag.Parse()
	s := newService(map[string]time.Duration{"/held": 500 * time.Millisecond, "/long": 1600 * time.Millisecond})
	h, err := s.routes(*by)
	if err != nil {
		fmt.Fprintf(os.Stderr, "contexts: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

func (s *service) routes(by string) (http.Handler, error) {
	h, err := s.handler(by)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /now", h)
	mux.Handle("GET /held", h)
	mux.Handle("GET /long", h)
	return mux, nil
}
