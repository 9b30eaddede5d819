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
	echo5 "github.com/labstack/echo/v5"
	"github.com/uptrace/bunrouter"

	"github.com/tarehq/tare/arms/routes"
	"github.com/tarehq/tare/serve/router"
)

// readAll asks for all parameters, as a handler does.
func readAll(names []string, value func(name string) string) {
	for _, name := range names {
		if value(name) == "" && value("*") == "" { // what is left of a path has that name in some
			panic("parameter " + name + " has no value")
		}
	}
}

// routers make a router for a table, by the handler type that the router's
// authors made for speed. Its handlers ask for all their parameters, or do nothing.
var routers = []struct {
	name string
	make func(t routes.Table, asks bool) http.Handler
}{
	{"tare", func(t routes.Table, asks bool) http.Handler {
		rt := new(router.Router)
		for _, r := range t {
			names := r.Params()
			rt.HandleFunc(r.Method+" "+r.Pattern, func(_ http.ResponseWriter, q *http.Request) {
				if asks {
					readAll(names, q.PathValue)
				}
			})
		}
		return rt
	}},
	{"servemux", func(t routes.Table, asks bool) http.Handler {
		mux := http.NewServeMux()
		for _, r := range t {
			names := r.Params()
			mux.HandleFunc(r.Method+" "+r.Pattern, func(_ http.ResponseWriter, q *http.Request) {
				if asks {
					readAll(names, q.PathValue)
				}
			})
		}
		return mux
	}},
	{"httprouter", func(t routes.Table, asks bool) http.Handler {
		rt := httprouter.New()
		for _, r := range t {
			names := r.Params()
			rt.Handle(r.Method, r.Colon(), func(_ http.ResponseWriter, _ *http.Request, ps httprouter.Params) {
				if asks {
					readAll(names, ps.ByName)
				}
			})
		}
		return rt
	}},
	{"bunrouter", func(t routes.Table, asks bool) http.Handler {
		rt := bunrouter.New()
		for _, r := range t {
			names := r.Params()
			rt.Handle(r.Method, r.Colon(), func(_ http.ResponseWriter, q bunrouter.Request) error {
				if asks {
					readAll(names, q.Param)
				}
				return nil
			})
		}
		return rt
	}},
	{"gin", func(t routes.Table, asks bool) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		rt := gin.New()
		for _, r := range t {
			names := r.Params()
			rt.Handle(r.Method, r.Colon(), func(c *gin.Context) {
				if asks {
					readAll(names, c.Param)
				}
			})
		}
		return rt
	}},
	{"echo", func(t routes.Table, asks bool) http.Handler {
		rt := echo.New()
		for _, r := range t {
			names := r.Params()
			rt.Add(r.Method, r.Colon(), func(c echo.Context) error {
				if asks {
					readAll(names, c.Param)
				}
				return nil
			})
		}
		return rt
	}},
	{"echo5", func(t routes.Table, asks bool) http.Handler {
		rt := echo5.New()
		for _, r := range t {
			names := r.Params()
			rt.Add(r.Method, r.Colon(), func(c *echo5.Context) error {
				if asks {
					readAll(names, c.Param)
				}
				return nil
			})
		}
		return rt
	}},
	{"chi", func(t routes.Table, asks bool) http.Handler {
		rt := chi.NewRouter()
		for _, r := range t {
			names := r.Params()
			rt.MethodFunc(r.Method, r.Path(), func(_ http.ResponseWriter, q *http.Request) {
				if asks {
					readAll(names, func(name string) string { return chi.URLParam(q, name) })
				}
			})
		}
		return rt
	}},
}

// tables are those of the well-known benchmark of routers, and a service of 1,000 and one
// of 5,000 routes.
func tables(tb testing.TB) map[string]routes.Table {
	all := map[string]routes.Table{}
	for _, name := range []string{"static", "github", "gplus", "parse", "service:1000", "service:5000"} {
		var t routes.Table
		if err := t.Set(name); err != nil {
			tb.Fatal(err)
		}
		all[name] = t
	}
	return all
}

// BenchmarkRouters asks for every route of a table once, in each iteration, by handlers
// that do nothing.
func BenchmarkRouters(b *testing.B) {
	for name, table := range tables(b) {
		for _, rival := range routers {
			b.Run("table="+name+"/router="+rival.name, func(b *testing.B) {
				h := rival.make(table, false)
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
}

// BenchmarkRoutersRatio sends the same requests through tare's router and a rival's by
// turns and reports the median, over the turns, of what tare's takes in terms of what
// the rival's takes. Unlike the times above, that holds on a busy machine. Handlers ask
// for all their parameters, or for none.
func BenchmarkRoutersRatio(b *testing.B) {
	for name, table := range tables(b) {
		for _, rival := range routers[1:] {
			for asked, asks := range map[string]bool{"all": true, "none": false} {
				b.Run("table="+name+"/router="+rival.name+"/asked="+asked, func(b *testing.B) {
					byTurns(b, table, rival.make, asks)
				})
			}
		}
	}
}

func byTurns(b *testing.B, table routes.Table, rival func(routes.Table, bool) http.Handler, asks bool) {
	handlers := [2]http.Handler{routers[0].make(table, asks), rival(table, asks)}
	requests := [2][]*http.Request{examples(table), examples(table)}
	const most = 200 // requests a turn: a longer one is seldom undisturbed
	turns := (len(table) + most - 1) / most
	size := (len(table) + turns - 1) / turns
	w := httptest.NewRecorder()
	for i, h := range handlers {
		h.ServeHTTP(w, requests[i][0]) // the first one has the table made
	}
	var ratios []float64
	for turn, from := 0, 0; b.Loop(); turn++ {
		to := min(from+size, len(table))
		var took [2]time.Duration
		for _, i := range [2]int{turn % 2, 1 - turn%2} {
			start := time.Now()
			for _, r := range requests[i][from:to] {
				handlers[i].ServeHTTP(w, r)
			}
			took[i] = time.Since(start)
		}
		ratios = append(ratios, float64(took[0])/float64(took[1]))
		from = to % len(table)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "tare/rival")
}

func examples(t routes.Table) []*http.Request {
	var rs []*http.Request
	for _, r := range t {
		e := r.Example()
		rs = append(rs, httptest.NewRequest(e.Method, e.Path, nil))
	}
	return rs
}
