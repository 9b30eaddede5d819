// Command pool answers from a buffer for each request: a new one, one out of a
// sync.Pool, or one out of a pool that is misused.
//
//	GET /small  1 KiB
//	GET /large  64 KiB
//	GET /huge   1 MiB, now and then, as exports and reports are
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/tarehq/tare/arms/arm"
)

func main() {
	buffers := flag.String("buffers", "pooled", "where a request's `buffer` comes from: "+names)
	flag.Parse()
	s, err := newService(*buffers)
	if err != nil {
		fmt.Fprintf(os.Stderr, "pool: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: s.routes(), Metrics: s.counts.metrics})
}

// service answers with the items of a list.
type service struct {
	answer func(http.ResponseWriter, int)
	counts *counts
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	for path, size := range map[string]int{"/small": 1 << 10, "/large": 64 << 10, "/huge": 1 << 20} {
		items := fitting(size)
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { s.answer(w, items) })
	}
	return mux
}

// send answers with what is in a buffer.
func send(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails when the client has gone
}
