package rivals_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/julienschmidt/httprouter"
	"github.com/labstack/echo/v4"
	"github.com/uptrace/bunrouter"

	"github.com/tarehq/tare/arms/routes"
	"github.com/tarehq/tare/serve/router"
)

// routers make a router for a table whose handlers do nothing, by the handler
// type that the router's authors made for speed.
var routers = []struct {
	name string
	make func(routes.Table) http.Handler
}{
	{"tare", func(t routes.Table) http.Handler {
		rt := new(router.Router)
		for _, r := range t {
			rt.HandleFunc(r.Method+" "+r.Pattern, func(http.ResponseWriter, *http.Request) {})
		}
		return rt
	}},
	{"servemux", func(t routes.Table) http.Handler {
		mux := http.NewServeMux()
		for _, r := range t {
			mux.HandleFunc(r.Method+" "+r.Pattern, func(http.ResponseWriter, *http.Request) {})
		}
		return mux
	}},
	{"httprouter", func(t routes.Table) http.Handler {
		rt := httprouter.New()
		for _, r := range t {
			rt.Handle(r.Method, r.Colon(), func(http.ResponseWriter, *http.Request, httprouter.Params) {})
		}
		return rt
	}},
	{"bunrouter", func(t routes.Table) http.Handler {
		rt := bunrouter.New()
		for _, r := range t {
			rt.Handle(r.Method, r.Colon(), func(http.ResponseWriter, bunrouter.Request) error { return nil })
		}
		return rt
	}},
	{"gin", func(t routes.Table) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		rt := gin.New()
		for _, r := range t {
			rt.Handle(r.Method, r.Colon(), func(*gin.Context) {})
		}
		return rt
	}},
	{"echo", func(t routes.Table) http.Handler {
		rt := echo.New()
		for _, r := range t {
			rt.Add(r.Method, r.Colon(), func(echo.Context) error { return nil })
		}
		return rt
	}},
	{"chi", func(t routes.Table) http.Handler {
		rt := chi.NewRouter()
		for _, r := range t {
			rt.MethodFunc(r.Method, r.Path(), func(http.ResponseWriter, *http.Request) {})
		}
		return rt
	}},
}

// BenchmarkGitHub asks for every route of the GitHub table once, in each
// iteration.
func BenchmarkGitHub(b *testing.B) {
	table := routes.GitHub()
	for _, rival := range routers {
		b.Run("router="+rival.name, func(b *testing.B) {
			h := rival.make(table)
			rs := examples(table)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range rs {
					h.ServeHTTP(w, r)
				}
			}
		})
	}
}

// BenchmarkGitHubRatio sends the same requests through tare's router and a
// rival's by turns and reports the median, over the turns, of what tare's takes in
// terms of what the rival's takes. Unlike the times above, that holds on a busy
// machine.
func BenchmarkGitHubRatio(b *testing.B) {
	table := routes.GitHub()
	ours := routers[0].make(table)
	requests := [2][]*http.Request{examples(table), examples(table)}
	w := httptest.NewRecorder()
	for _, rival := range routers[1:] {
		handlers := [2]http.Handler{ours, rival.make(table)}
		b.Run("router="+rival.name, func(b *testing.B) {
			var ratios []float64
			for turn := 0; b.Loop(); turn++ {
				var took [2]time.Duration
				for _, i := range [2]int{turn % 2, 1 - turn%2} {
					start := time.Now()
					for _, r := range requests[i] {
						handlers[i].ServeHTTP(w, r)
					}
					took[i] = time.Since(start)
				}
				ratios = append(ratios, float64(took[0])/float64(took[1]))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "tare/"+rival.name)
		})
	}
}

func examples(t routes.Table) []*http.Request {
	var rs []*http.Request
	for _, r := range t {
		e := r.Example()
		rs = append(rs, httptest.NewRequest(e.Method, e.Path, nil))
	}
	return rs
}
