package compat

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// chiProbes are probes of chi's router with the middlewares that come with it.
func chiProbes() []Probe {
	const from = "github.com/go-chi/chi/v5/middleware"
	return []Probe{
		{"chi, RequestID", from, "the client's identifier, or one of its own, in the context", probeRequestID},
		{"chi, RealIP", from, "the address that the proxy says", probeRealIP},
		{"chi, Logger", from, "a line a request", probeLogger},
		{"chi, Recoverer", from, "500 for a panic, and http.ErrAbortHandler passed on", probeRecoverer},
		{"chi, Compress", from, "gzip for who accepts it, also where the answer is flushed", probeChiCompress},
		{"chi, Timeout", from, "504 when the context's time is up", probeTimeout},
		{"chi, Throttle", from, "429 beyond the limit, and service again below it", probeThrottle},
	}
}

func router(with ...func(http.Handler) http.Handler) *chi.Mux {
	r := chi.NewRouter()
	r.Use(with...)
	return r
}

func probeRequestID(t *Trial) {
	r := router(middleware.RequestID)
	r.Get("/users/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, chi.URLParam(r, "name"), " ", middleware.GetReqID(r.Context()))
	})
	t.serve(r)
	for _, id := range []string{"abc-1", "xyz-2"} {
		t.wants(t.get("/users/ann", "X-Request-Id: "+id), http.StatusOK, "ann "+id)
	}
	first, second := t.get("/users/ann").body, t.get("/users/ann").body
	t.must(strings.HasPrefix(first, "ann ") && len(first) > len("ann ") && first != second, "requests have no identifier of their own")
}

func probeRealIP(t *Trial) {
	//lint:ignore SA1019 it is deprecated and still what many services have
	realIP := middleware.RealIP
	r := router(realIP)
	r.Get("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RemoteAddr) })
	t.serve(r)
	for _, address := range []string{"192.0.2.7", "192.0.2.8"} {
		t.wants(t.get("/", "X-Forwarded-For: "+address+", 198.51.100.1"), http.StatusOK, address)
	}
	got := t.get("/").body
	t.must(strings.HasPrefix(got, "127.0.0.1:"), "the client's address is %q", short(got))
}

func probeLogger(t *Trial) {
	var lines journal
	format := &middleware.DefaultLogFormatter{Logger: log.New(&lines, "", 0), NoColor: true}
	r := router(middleware.RequestID, middleware.RequestLogger(format))
	r.Get("/pot", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout")
	})
	t.serve(r)
	for _, kind := range []string{"red", "tin"} {
		t.wants(t.get("/pot?kind="+kind, "Host: "+kind+".example", "X-Request-Id: id-"+kind), http.StatusTeapot, "short and stout")
		t.must(lines.awaits("[id-"+kind+`] "GET http://`+kind+".example/pot?kind="+kind+` HTTP/1.1" from 127.0.0.1:`), "the line is not that of the request")
		t.must(lines.awaits(" - 418 15B in "), "the line lacks status and size")
	}
}

func probeRecoverer(t *Trial) {
	var lines journal
	format := &middleware.DefaultLogFormatter{Logger: log.New(&lines, "", 0), NoColor: true}
	r := router(middleware.RequestLogger(format), middleware.Recoverer)
	r.Get("/abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	r.Get("/*", panicsAt)
	t.serve(r)
	recovered(t)
	a, err := t.trySend(t.request(http.MethodGet, "/abort", ""))
	t.promised(err != nil, "an aborted answer comes with status %d instead of none", a.status)
}

func probeChiCompress(t *Trial) {
	r := router(middleware.Compress(5, "text/plain"))
	r.Get("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		half := len(poem) / 2
		io.WriteString(w, poem[:half])
		http.NewResponseController(w).Flush()
		io.WriteString(w, poem[half:])
	})
	t.serve(r)
	zipped(t, "text/plain")
}

func probeTimeout(t *Trial) {
	r := router(middleware.Timeout(20 * time.Millisecond))
	r.Get("/slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(patience):
			io.WriteString(w, "never told")
		}
	})
	r.Get("/fast", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fast") })
	t.serve(r)
	for range 2 {
		t.wants(t.get("/slow"), http.StatusGatewayTimeout, "")
		t.wants(t.get("/fast"), http.StatusOK, "fast")
	}
}

func probeThrottle(t *Trial) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	r := router(middleware.Throttle(1))
	r.Get("/", func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-release
		io.WriteString(w, "served")
	})
	t.serve(r)
	first := make(chan error, 1)
	go func() {
		a, err := t.trySend(t.request(http.MethodGet, "/", ""))
		if err == nil && a.body != "served" {
			err = errors.New("wrong body")
		}
		first <- err
	}()
	_, ok := within(entered)
	t.need(ok, "the first request does not reach the handler")
	a := t.get("/")
	t.must(a.status == http.StatusTooManyRequests, "status %d instead of 429", a.status)
	close(release)
	err, ok := within(first)
	t.need(ok && err == nil, "the first request is not answered")
	t.wants(t.get("/"), http.StatusOK, "served")
}
