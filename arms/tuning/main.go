// Command tuning is an http.Server with one of these settings:
//
//	default  as http.ListenAndServe makes it, with the default mux
//	tuned    the five lines that a publication sets, and nothing else
//	advised  the same with what guides add: limits on the header's time and size
//	threads  as default, with a thread of its own for each connection
//
// It answers GET /ping, and GET /sleep?ms=N after N milliseconds, and reports
// the settings as facts, read from the server that it runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

// longest bounds what GET /sleep may be asked for.
const longest = time.Minute

func main() {
	kind := flag.String("server", "default", "`settings` of the server: "+kinds)
	flag.Parse()
	register(http.DefaultServeMux)
	s, err := server(*kind, os.Getenv("TARE_ADDR"), http.DefaultServeMux)
	if err != nil {
		fmt.Fprintf(os.Stderr, "tuning: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{
		Handler: http.DefaultServeMux, // for the loop
		Serve:   s.Serve,
		Facts:   func() map[string]string { return facts(s) },
	})
}

const kinds = "default, tuned, advised or threads"

// server returns the server to run. The arm is given a listener, so that addr is
// set and not used.
func server(kind, addr string, mux *http.ServeMux) (*http.Server, error) {
	switch kind {
	case "default":
		return &http.Server{Addr: addr, Handler: mux}, nil
	case "tuned":
		return &http.Server{
			Addr:         addr,
			Handler:      mux,
			ReadTimeout:  5 * time.Second,
			WriteTimeout: 10 * time.Second,
			IdleTimeout:  30 * time.Second,
		}, nil
	case "advised":
		return &http.Server{
			Addr:              addr,
			Handler:           mux,
			ReadTimeout:       5 * time.Second,
			WriteTimeout:      10 * time.Second,
			IdleTimeout:       30 * time.Second,
			ReadHeaderTimeout: 2 * time.Second,
			MaxHeaderBytes:    1 << 20,
		}, nil
	}
	if kind == "threads" {
		debug.SetMaxThreads(mostThreads)
		return &http.Server{Addr: addr, Handler: pinned(mux), ConnContext: newPin}, nil
	}
	return nil, fmt.Errorf("no server is named %q: there are %s", kind, kinds)
}

// mostThreads is more than there are connections in any workload; Go allows itself 10,000.
const mostThreads = 200_000

// pinKey is the context's key of a *bool: whether a connection has its thread.
type pinKey struct{}

func newPin(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, pinKey{}, new(bool))
}

// pinned gives a connection's goroutine a thread of its own with its first request, for
// as long as the connection lives: no other goroutine runs on it.
func pinned(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if has := r.Context().Value(pinKey{}).(*bool); !*has {
			runtime.LockOSThread()
			*has = true
		}
		next.ServeHTTP(w, r)
	})
}

func register(mux *http.ServeMux) {
	ping := []byte(routes.Pong)
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { routes.Write(w, routes.JSON, ping) })
	mux.HandleFunc("GET /sleep", sleep)
}

// sleep holds its request, and nothing else, for so long.
func sleep(w http.ResponseWriter, r *http.Request) {
	d, err := duration(r.FormValue("ms"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(d):
		routes.Write(w, routes.Text, []byte(d.String()))
	case <-r.Context().Done(): // nobody waits for the answer
	}
}

func duration(ms string) (time.Duration, error) {
	n, err := strconv.ParseUint(ms, 10, 32)
	d := time.Duration(n) * time.Millisecond
	if err != nil || d > longest {
		return 0, errors.New("ms: want a whole number from 0 to " + strconv.FormatInt(longest.Milliseconds(), 10))
	}
	return d, nil
}

// facts are the settings in force: a zero time-out is none, a zero header
// limit the package's default.
func facts(s *http.Server) map[string]string {
	limit := s.MaxHeaderBytes
	if limit == 0 {
		limit = http.DefaultMaxHeaderBytes
	}
	return map[string]string{
		"http.Server.ReadTimeout":       timeout(s.ReadTimeout),
		"http.Server.WriteTimeout":      timeout(s.WriteTimeout),
		"http.Server.IdleTimeout":       timeout(s.IdleTimeout),
		"http.Server.ReadHeaderTimeout": timeout(s.ReadHeaderTimeout),
		"http.Server.MaxHeaderBytes":    strconv.Itoa(limit),
	}
}

func timeout(d time.Duration) string {
	if d == 0 {
		return "0s (none)"
	}
	return d.String()
}
