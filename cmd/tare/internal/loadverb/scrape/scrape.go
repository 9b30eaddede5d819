// Package scrape offers the state of a running load to Prometheus.
package scrape

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/load"
)

// Server answers scrapes at /metrics with the latest state. Nil offers nothing. It is safe
// for concurrent use.
type Server struct {
	latest atomic.Pointer[[]byte]
	server *http.Server
	addr   net.Addr
}

// Listen begins to answer at an address such as ":9464"; port 0 is any free one.
func Listen(addr string) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{addr: l.Addr()}
	s.latest.Store(new([]byte)) // until there is a state
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go s.server.Serve(l)
	return s, nil
}

// URL is where to scrape.
func (s *Server) URL() string { return "http://" + s.addr.String() + "/metrics" }

// ServeHTTP writes the latest state.
func (s *Server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(*s.latest.Load())
}

// Note takes a state.
func (s *Server) Note(state load.Snapshot) {
	if s == nil {
		return
	}
	s.latest.Store(new(write(state)))
}

// Close stops answering.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	return s.server.Close()
}

// quantiles of response times that are offered.
var quantiles = [...]float64{0.5, 0.9, 0.95, 0.99, 0.999}

// write is a state in the text format of Prometheus, version 0.0.4. Counters begin again
// when the warm-up ends, and with each probe of a search.
func write(state load.Snapshot) []byte {
	var b bytes.Buffer
	family := func(name, kind, help string) {
		fmt.Fprintf(&b, "# HELP tare_load_%s %s\n# TYPE tare_load_%[1]s %[3]s\n", name, help, kind)
	}
	c := state.Counts
	family("requests_total", "counter", "Requests scheduled.")
	fmt.Fprintf(&b, "tare_load_requests_total %d\n", c.Scheduled)
	family("responses_total", "counter", "Whole responses by status class.")
	for class := 1; class < len(c.Status); class++ {
		fmt.Fprintf(&b, "tare_load_responses_total{class=\"%dxx\"} %d\n", class, c.Status[class])
	}
	family("failures_total", "counter", "Requests without a whole response, by cause.")
	for _, f := range []struct {
		cause string
		n     uint64
	}{{"refused", c.Refused}, {"reset", c.Reset}, {"timeout", c.Timeout}, {"short", c.Short}, {"malformed", c.Malformed}, {"dropped", c.Dropped}} {
		fmt.Fprintf(&b, "tare_load_failures_total{cause=%q} %d\n", f.cause, f.n)
	}
	family("unverified_total", "counter", "Responses that failed verification.")
	fmt.Fprintf(&b, "tare_load_unverified_total %d\n", c.Unverified)
	family("in_flight", "gauge", "Requests in flight or waiting for a connection.")
	fmt.Fprintf(&b, "tare_load_in_flight %d\n", state.Flight)
	family("elapsed_seconds", "gauge", "Time since the measured part began; negative during the warm-up.")
	fmt.Fprintf(&b, "tare_load_elapsed_seconds %g\n", state.Elapsed.Seconds())
	h := state.Response
	family("response_seconds", "summary", "Response times since the measured part began.")
	for _, q := range quantiles {
		if h.Count() > 0 {
			fmt.Fprintf(&b, "tare_load_response_seconds{quantile=\"%g\"} %g\n", q, float64(h.Quantile(q))/1e9)
		}
	}
	sum := 0.0 // the mean of nothing is not a number
	if h.Count() > 0 {
		sum = h.Mean() * float64(h.Count()) / 1e9
	}
	fmt.Fprintf(&b, "tare_load_response_seconds_sum %g\ntare_load_response_seconds_count %d\n", sum, h.Count())
	return b.Bytes()
}
