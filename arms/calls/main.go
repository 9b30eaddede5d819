// Command calls is a service that calls an upstream for each request. It serves
// the upstream itself, on a loopback port of its own.
//
// The flag -client says how the upstream is called, and -work whether a request
// waits for the call:
//
//	GET /           one call
//	GET /internal   a call of 5 ms
//	GET /partner    a call of 150 ms, as third parties take
//	GET /transfer   a call of 500 ms, as large transfers take
//	GET /stall      a call that the upstream does not answer
//
// A request waits 100 ms at most for /stall. Then it answers without the upstream,
// whatever becomes of the call. All other calls are waited for, and one that fails
// is answered with 504.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/upstream"
)

func main() {
	o := options{}
	flag.StringVar(&o.client, "client", "shared", "how the upstream is `called`: "+clients)
	flag.StringVar(&o.work, "work", "wait", "what a request to / does with its call: "+works)
	flag.DurationVar(&o.delay, "delay", 0, "how long the upstream takes for /")
	flag.IntVar(&o.slots, "slots", 0, "most calls to / at once; 0: no bound")
	flag.IntVar(&o.conns, "conns", 0, "most connections to the upstream, busy or idle; 0: 64 idle ones")
	header := flag.Int("max-header", 0, "most bytes of a request's header; 0: net/http's default")
	flag.Parse()
	s, err := newService(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "calls: %v\n", err)
		os.Exit(2)
	}
	h := s.routes()
	arm.Main(arm.Options{Handler: h, Serve: (&http.Server{Handler: h, MaxHeaderBytes: *header}).Serve})
}

// options are what distinguishes the arms.
type options struct {
	client, work string
	delay        time.Duration
	slots, conns int
}

const (
	body    = `{"stock":7}`
	longest = 100 * time.Millisecond // that a request waits for an upstream that stalls
)

// service answers with what an upstream says.
type service struct {
	url    string
	client caller
	work   func(http.ResponseWriter, *http.Request)
}

func newService(o options) (*service, error) {
	s := &service{}
	var err error
	if s.client, err = newCaller(o); err != nil {
		return nil, err
	}
	if s.work, err = s.worker(o); err != nil {
		return nil, err
	}
	s.url, err = upstream.Start(answers(o.delay))
	return s, err
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.work)
	mux.HandleFunc("GET /stall", s.stalled)
	for _, kind := range []string{"/internal", "/partner", "/transfer"} {
		mux.HandleFunc("GET "+kind, s.called)
	}
	return mux
}

// called waits for the upstream.
func (s *service) called(w http.ResponseWriter, r *http.Request) {
	stock, err := s.client(r.Context(), s.url+r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
		return
	}
	reply(w, stock)
}

// stalled answers without the upstream when its own time is over. Whether the call
// ends then is for the caller to have said.
func (s *service) stalled(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), longest)
	defer cancel()
	done := make(chan string, 1)
	go func() {
		stock, err := s.client(ctx, s.url+r.URL.Path)
		if err != nil {
			stock = body // as known from before
		}
		done <- stock
	}()
	select {
	case stock := <-done:
		reply(w, stock)
	case <-ctx.Done():
		reply(w, body)
	}
}

func reply(w http.ResponseWriter, stock string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write([]byte(stock)) // fails when the client has gone
}

// answers are the upstream's: each path's after its time, and none to /stall.
func answers(delay time.Duration) http.Handler {
	mux := http.NewServeMux()
	for path, d := range map[string]time.Duration{
		"/{$}":      delay,
		"/internal": 5 * time.Millisecond,
		"/partner":  150 * time.Millisecond,
		"/transfer": 500 * time.Millisecond,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if pause(r.Context(), d) == nil {
				reply(w, body)
			}
		})
	}
	mux.HandleFunc("/stall", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return mux
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
