package rivals_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"

	"github.com/tarehq/tare/serve/middleware/flight"
	"github.com/tarehq/tare/serve/router"
)

// TestFlight mounts the flight recorder's middleware on routers that know nothing of
// it, by what each offers for that.
func TestFlight(t *testing.T) {
	const bound = 10 * time.Millisecond
	gin.SetMode(gin.ReleaseMode)
	doze := func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(bound)
		io.WriteString(w, "done")
	}
	for _, tc := range []struct {
		name  string
		mount func(r *flight.Recorder) http.Handler
		want  string // what the request is called
	}{
		{"net/http", func(r *flight.Recorder) http.Handler {
			mux := http.NewServeMux()
			mux.HandleFunc("/users/{id}", doze)
			return r.Middleware(mux)
		}, "/users/{id}"},
		{"serve/router", func(r *flight.Recorder) http.Handler {
			mux := new(router.Router)
			mux.Handle("GET /users/{id}", http.HandlerFunc(doze))
			return r.Middleware(mux)
		}, "/users/{id}"},
		{"chi", func(r *flight.Recorder) http.Handler {
			mux := chi.NewRouter()
			mux.Use(r.Middleware)
			mux.Get("/users/{id}", doze)
			return mux
		}, "/users/{id}"},
		{"gin", func(r *flight.Recorder) http.Handler {
			mux := gin.New()
			mux.GET("/users/:id", func(c *gin.Context) { doze(c.Writer, c.Request) })
			return r.Middleware(mux)
		}, "/users/7"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := make(chan flight.Request, 1)
			r, err := flight.New(flight.Options{SlowerThan: bound, Sink: func(f flight.Request) (io.WriteCloser, error) {
				found <- f
				return os.Create(filepath.Join(t.TempDir(), "slow.trace"))
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			s := httptest.NewServer(tc.mount(r))
			defer s.Close()
			res, err := s.Client().Get(s.URL + "/users/7")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || string(body) != "done" {
				t.Errorf("answered %q, %v", body, err)
			}
			select {
			case f := <-found:
				if f.Pattern != tc.want || f.Took < bound || !strings.Contains(f.String(), "GET "+tc.want) {
					t.Errorf("slow was %s, want GET %s of at least %s", f, tc.want, bound)
				}
			case <-time.After(10 * time.Second):
				t.Error("no snapshot within 10 s")
			}
		})
	}
}
