package router_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tarehq/tare/serve/internal/sys"
	"github.com/tarehq/tare/serve/router"
)

func nothing(http.ResponseWriter, *http.Request) {}

// fresh returns a function that makes a request new again, as a server hands it
// over, without allocating.
func fresh(r *http.Request) func() {
	saved := *r
	return func() { *r = saved }
}

// TestAllocations holds what a match may allocate: nothing if the server made
// room with the request, and else half a kilobyte for a dozen requests.
func TestAllocations(t *testing.T) {
	rt := new(router.Router)
	for _, pattern := range []string{
		"GET /static", "GET /u/{x}", "GET /u/{x}/{y}/{z}", "GET /n/{x:int}", "GET /m/{x:[a-z]+}", "GET /f/{r...}", "GET h.com/{x}/h",
	} {
		rt.HandleFunc(pattern, nothing)
	}
	tests := []struct {
		host, target string
		values       int
	}{
		{"", "/static", 0},
		{"", "/u/1", 1},
		{"", "/u/1/2/3", 3},
		{"", "/n/17", 1},
		{"", "/m/abc", 1},
		{"", "/f/a/b/c.css", 1},
		{"h.com:80", "/a/h", 1},
	}
	for _, tt := range tests {
		if raced && strings.HasPrefix(tt.target, "/m/") {
			continue // package regexp keeps its machines in a pool
		}
		plain := request("GET", tt.host, tt.target)
		const runs = 3100 // an average below one counts as none, so count by hand
		renew := fresh(plain)
		got := testing.AllocsPerRun(1, func() {
			for range runs {
				renew()
				rt.ServeHTTP(nil, plain)
			}
		})
		if most := float64(runs*tt.values)/31*1.2 + 2; got > most {
			t.Errorf("%s, plain: got %v allocations for %d requests, want at most %v", tt.target, got, runs, most)
		}

		roomy := &sys.RoomyRequest{Request: *request("GET", tt.host, tt.target)}
		sys.FindPathFields().Reserve(roomy)
		renew = fresh(&roomy.Request)
		got = testing.AllocsPerRun(1, func() {
			for range runs {
				renew()
				rt.ServeHTTP(nil, &roomy.Request)
			}
		})
		if got > 0 {
			t.Errorf("%s, with room: got %v allocations for %d requests, want none", tt.target, got, runs)
		}
	}
}

// TestMissesAllocateNothing holds for paths that are clean and near no route.
func TestMissesAllocateNothing(t *testing.T) {
	rt := &router.Router{NotFound: http.HandlerFunc(nothing)}
	rt.HandleFunc("GET /u/{x}", nothing)
	rt.HandleFunc("GET /abc", nothing)
	for _, target := range []string{"/nowhere", "/u/1/2/3", "/ab", "/abcd"} {
		r := request("GET", "", target)
		if got := testing.AllocsPerRun(100, func() { rt.ServeHTTP(nil, r) }); got > 0 {
			t.Errorf("%s: got %v allocations, want none", target, got)
		}
	}
}

// TestValuesStay keeps requests past their handlers and looks at the values when
// many others have been served.
func TestValuesStay(t *testing.T) {
	rt := new(router.Router)
	var kept []*http.Request
	rt.HandleFunc("/{x}/{y}", func(_ http.ResponseWriter, r *http.Request) { kept = append(kept, r) })
	for i := range 500 {
		r := request("GET", "", fmt.Sprintf("/%d/b%d", i, i))
		if i%2 == 0 {
			roomy := &sys.RoomyRequest{Request: *r}
			sys.FindPathFields().Reserve(roomy)
			r = &roomy.Request
		}
		rt.ServeHTTP(nil, r)
	}
	for i, r := range kept {
		if x, y := r.PathValue("x"), r.PathValue("y"); x != fmt.Sprint(i) || y != fmt.Sprint("b", i) {
			t.Errorf("request %d: got %q and %q", i, x, y)
		}
	}
}

// TestCopiesKeepApart routes copies of one request to inner routers; the values
// of the outer stay.
func TestCopiesKeepApart(t *testing.T) {
	inner := new(router.Router)
	inner.HandleFunc("/{a}/{b}", func(_ http.ResponseWriter, r *http.Request) {
		if r.PathValue("a") != "1" || r.PathValue("b") != "2" || r.PathValue("x") != "" {
			t.Errorf("inside: got %q, %q and %q", r.PathValue("a"), r.PathValue("b"), r.PathValue("x"))
		}
		r.SetPathValue("a", "changed")
		r.SetPathValue("x", "set")
		if r.PathValue("a") != "changed" || r.PathValue("x") != "set" {
			t.Errorf("inside: values that were set are not there")
		}
	})
	outer := new(router.Router)
	outer.HandleFunc("/{x}/{y}", func(_ http.ResponseWriter, r *http.Request) {
		for _, q := range []*http.Request{r.WithContext(context.Background()), r.Clone(context.Background())} {
			inner.ServeHTTP(nil, q)
			if q.Pattern != "/{a}/{b}" || r.Pattern != "/{x}/{y}" || r.PathValue("x") != "1" || r.PathValue("y") != "2" || r.PathValue("a") != "" {
				t.Errorf("outside: got %q with %q and %q", r.Pattern, r.PathValue("x"), r.PathValue("y"))
			}
		}
		early := r.WithContext(context.Background())
		inner.ServeHTTP(nil, r)
		if early.PathValue("x") != "1" || early.PathValue("y") != "2" {
			t.Errorf("a copy made before: got %q and %q", early.PathValue("x"), early.PathValue("y"))
		}
	})
	outer.ServeHTTP(nil, request("GET", "", "/1/2"))
	roomy := &sys.RoomyRequest{Request: *request("GET", "", "/1/2")}
	sys.FindPathFields().Reserve(roomy)
	outer.ServeHTTP(nil, &roomy.Request)
}

// TestDeepPatterns has more wildcards than fit where they usually lie.
func TestDeepPatterns(t *testing.T) {
	for _, n := range []int{5, 6, 7, 8, 9, 31, 32, 100} {
		rt := new(router.Router)
		var pattern, path strings.Builder
		for i := range n {
			fmt.Fprintf(&pattern, "/{w%d}", i)
			fmt.Fprintf(&path, "/v%d", i)
		}
		served := false
		rt.HandleFunc(pattern.String(), func(_ http.ResponseWriter, r *http.Request) {
			served = true
			for i := range n {
				if got, want := r.PathValue(fmt.Sprint("w", i)), fmt.Sprint("v", i); got != want {
					t.Errorf("wildcard %d of %d: got %q, want %q", i, n, got, want)
				}
			}
		})
		for range 40 {
			rt.ServeHTTP(nil, request("GET", "", path.String()))
		}
		if !served {
			t.Errorf("%d wildcards: not served", n)
		}
	}
}

// TestConcurrentUse adds routes while others are asked for.
func TestConcurrentUse(t *testing.T) {
	rt := new(router.Router)
	rt.Handle("/always/{x}/{y}", show("always"))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				if g == 0 {
					rt.Handle(fmt.Sprintf("/new/%d/{x}", i), show("new"))
					continue
				}
				got := ask(rt, request("GET", "", fmt.Sprintf("/always/%d/%d", g, i)))
				if want := fmt.Sprintf("x=\"%d\", y=\"%d\"", g, i); !strings.Contains(got.body, want) {
					t.Errorf("got %s, want %s", got.body, want)
				}
			}
		})
	}
	wg.Wait()
	for i := range 200 {
		if got := ask(rt, request("GET", "", fmt.Sprintf("/new/%d/a", i))); got.status != 200 {
			t.Fatalf("route %d, added while serving: got %+v", i, got)
		}
	}
}
