package timeout_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/timeout"
	"github.com/tarehq/tare/serve/servetest"
)

// TestServe has requests on one connection of package serve, whose contexts end without
// a copy: each by its own deadline, none by that of the one before.
func TestServe(t *testing.T) {
	const after = 50 * time.Millisecond
	mw, err := timeout.New(timeout.Options{After: after})
	if err != nil {
		t.Fatal(err)
	}
	var seen *http.Request
	outer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = r
			next.ServeHTTP(w, r)
			if _, ok := r.Context().Deadline(); ok {
				t.Error("the deadline outlives its layer")
			}
		})
	}
	for _, reuse := range []bool{false, true} {
		s := servetest.NewUnstartedServer(outer(mw(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			if r != seen {
				t.Error("the request was copied")
			}
			if at, ok := ctx.Deadline(); !ok || time.Until(at) > after {
				t.Errorf("deadline in %s, %t", time.Until(at), ok)
			}
			switch r.URL.Path {
			case "/wait":
				<-ctx.Done()
			case "/derived":
				ctx, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				<-ctx.Done()
			case "/poll":
				for ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
			case "/look":
				select { // a timer is set, and must not end a later request
				case <-ctx.Done():
				default:
				}
				io.WriteString(w, "ok")
				return
			case "/long":
				time.Sleep(after - after/10)
				if ctx.Err() == nil {
					io.WriteString(w, "ok")
				}
				return
			}
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("%s: %v", r.URL.Path, ctx.Err())
			}
		}))))
		s.Config.Reuse = reuse
		s.Start()
		for _, path := range []string{"/wait", "/look", "/long", "/derived", "/look", "/long", "/poll", "/look"} {
			resp, err := s.Client().Get(s.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			want := map[bool]int{true: 200, false: 503}[path == "/look" || path == "/long"]
			if resp.StatusCode != want && path != "/long" || err != nil { // a busy machine may take /long beyond
				t.Errorf("reuse %t, %s: %d %q %v", reuse, path, resp.StatusCode, body, err)
			}
		}
		s.Close()
	}
}
