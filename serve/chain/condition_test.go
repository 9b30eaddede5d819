package chain_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/chain"
)

// asking returns a request for a target such as "GET example.com/x".
func asking(t testing.TB, target string, header ...string) *http.Request {
	t.Helper()
	method, where, _ := strings.Cut(target, " ")
	slash := strings.IndexByte(where, '/')
	u, err := url.ParseRequestURI(where[slash:])
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Method: method, URL: u, Host: where[:slash], Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func TestConditions(t *testing.T) {
	t.Setenv("TARE_CHAIN_TEST", "b")
	robot := chain.Ask("a robot", func(r *http.Request) bool { return r.Header.Get("User-Agent") == "robot" })
	tests := []struct {
		cond   chain.Condition
		target string
		header []string
		want   bool
	}{
		{chain.Path("/admin"), "GET /admin", nil, true},
		{chain.Path("/admin"), "GET /admin/", nil, true},
		{chain.Path("/admin"), "GET /admin/users", nil, true},
		{chain.Path("/admin"), "GET /administrators", nil, false},
		{chain.Path("/admin"), "GET /", nil, false},
		{chain.Path("/admin"), "GET /x/admin", nil, false},
		{chain.Path("/admin"), "GET //admin", nil, true},
		{chain.Path("/admin"), "GET /x/../admin", nil, true},
		{chain.Path("/admin"), "GET /./admin/", nil, true},
		{chain.Path("/admin"), "GET /%61dmin", nil, true},
		{chain.Path("/admin"), "GET /admin%2Fusers", nil, false},
		{chain.Path("/admin/"), "GET /admin", nil, true},
		{chain.Path("/admin/{$}"), "GET /admin/x", nil, true},
		{chain.Path("/"), "GET /", nil, true},
		{chain.Path("/"), "GET /x", nil, true},
		{chain.Path("/u/{id}/posts"), "GET /u/7/posts/1", nil, true},
		{chain.Path("/u/{id}/posts"), "GET /u/7/photos", nil, false},

		{chain.Route("/admin"), "GET /admin/", nil, false},
		{chain.Route("GET /u/{id}"), "GET /u/7", nil, true},
		{chain.Route("GET /u/{id}"), "HEAD /u/7", nil, true},
		{chain.Route("GET /u/{id}"), "POST /u/7", nil, false},
		{chain.Route("GET /u/{id}"), "GET /u/", nil, false},
		{chain.Route("GET /u/{id}"), "GET /u/7/8", nil, false},
		{chain.Route("/u/{rest...}"), "GET /u/7/8", nil, true},
		{chain.Route("/u/{rest...}"), "GET /u", nil, false},
		{chain.Route("/u/{$}"), "GET /u/", nil, true},
		{chain.Route("/u/{$}"), "GET /u/7", nil, false},
		{chain.Route("/u/{$}"), "GET //u/", nil, true},
		{chain.Route("/u/{$}"), "GET //u", nil, false},
		{chain.Route("/...}"), "GET /x", nil, false},
		{chain.Route("/...}"), "GET /...}", nil, true},
		{chain.Route("//"), "GET /0/", nil, true},
		{chain.Route("//"), "GET /0", nil, false},
		{chain.Route("//"), "CONNECT //", nil, true},
		{chain.Route("/a//b"), "GET /a/x/b", nil, true},
		{chain.Route("/a//b"), "GET /a//b", nil, false},
		{chain.Route("/u/{id:int}"), "GET /u/7", nil, true},
		{chain.Route("/u/{id:int}"), "GET /u/me", nil, false},
		{chain.Path("/u/{id:int}"), "GET /u/7/posts", nil, true},
		{chain.Path("/u/{id:int}"), "GET /u/me", nil, false},
		{chain.Route("example.com/"), "GET example.com:8080/x", nil, true},
		{chain.Route("example.com/"), "GET example.org/x", nil, false},

		{chain.Method("GET"), "HEAD /", nil, true},
		{chain.Method("HEAD"), "GET /", nil, false},
		{chain.Method("POST", "PUT"), "PUT /", nil, true},
		{chain.Method("POST", "PUT"), "PATCH /", nil, false},

		{chain.Header("x-a"), "GET /", []string{"X-A", ""}, true},
		{chain.Header("X-A"), "GET /", nil, false},
		{chain.Header("host", "other", "example.com"), "GET example.com/", nil, true},
		{chain.Header("Host", "example"), "GET example.com/", nil, false},
		{chain.Header("X-A", "1", "2"), "GET /", []string{"X-A", "3", "X-A", "2"}, true},
		{chain.Header("X-A", "1", "2"), "GET /", []string{"X-A", "1, 2"}, false},

		{chain.Env("TARE_CHAIN_TEST"), "GET /", nil, true},
		{chain.Env("TARE_CHAIN_TEST", "a", "b"), "GET /", nil, true},
		{chain.Env("TARE_CHAIN_TEST", "a"), "GET /", nil, false},
		{chain.Env("TARE_CHAIN_UNSET"), "GET /", nil, false},
		{chain.Env("TARE_CHAIN_UNSET", ""), "GET /", nil, true},

		{robot, "GET /", []string{"User-Agent", "robot"}, true},
		{chain.Not(robot), "GET /", []string{"User-Agent", "robot"}, false},
		{chain.All(chain.Method("GET"), chain.Path("/a")), "GET /a", nil, true},
		{chain.All(chain.Method("GET"), chain.Path("/a")), "PUT /a", nil, false},
		{chain.Any(chain.Method("GET"), chain.Path("/a")), "PUT /a", nil, true},
		{chain.Any(chain.Method("GET"), chain.Path("/a")), "PUT /b", nil, false},
		{chain.All(), "GET /", nil, true},
		{chain.Any(), "GET /", nil, false},
	}
	for _, tt := range tests {
		r := asking(t, tt.target, tt.header...)
		if got := tt.cond.Match(r); got != tt.want {
			t.Errorf("%v, %s %q: got %t, want %t", tt.cond, tt.target, tt.header, got, tt.want)
		}
		if got := stands(t, chain.New().When(tt.cond, mark), r); got != tt.want {
			t.Errorf("%v, %s %q: the layer stands: got %t, want %t", tt.cond, tt.target, tt.header, got, tt.want)
		}
	}
}

// mark marks the answers of requests that pass through it.
func mark(next http.Handler) http.Handler { return &marked{next} }

type marked struct{ next http.Handler }

func (h *marked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Marked", "yes")
	h.next.ServeHTTP(w, r)
}

// stands reports whether the one layer of c marks the answer to r, which the
// handler gives in either case.
func stands(t testing.TB, c *chain.Chain, r *http.Request) bool {
	t.Helper()
	w := httptest.NewRecorder()
	chain.Must(c.Then(http.HandlerFunc(answerPong))).ServeHTTP(w, r)
	if got := w.Body.String(); got != string(pong) {
		t.Errorf("%s %s: answered %q, want %q", r.Method, r.URL, got, pong)
	}
	return w.Header().Get("Marked") != ""
}

func TestConditionsRefuse(t *testing.T) {
	tests := map[string]func(){
		`path "admin"`:       func() { chain.Path("admin") },
		`path "GET /admin"`:  func() { chain.Path("GET /admin") },
		`path "a.org/admin"`: func() { chain.Path("a.org/admin") },
		`path "/{"`:          func() { chain.Path("/{") },
		`path "/admin//"`:    func() { chain.Path("/admin//") },
		`path "/x/../admin"`: func() { chain.Path("/x/../admin") },
		`route ""`:           func() { chain.Route("") },
		`route "/{a}/{a}"`:   func() { chain.Route("/{a}/{a}") },
		"without methods":    func() { chain.Method() },
		`write "POST"`:       func() { chain.Method("GET", "post") },
		`Ask "why" without`:  func() { chain.Ask("why", nil) },
		"Not of":             func() { chain.Not(nil) },
		"All of":             func() { chain.All(chain.Method("GET"), nil) },
		"Any of":             func() { chain.Any(nil, chain.Method("GET")) },
		`for "x"`:            func() { chain.New().For("x") },
		"context's key":      func() { chain.KeyOf[int]([]int{}) },
	}
	for want, f := range tests {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "chain: ") || !strings.Contains(got, want) {
					t.Errorf("got panic %q, want chain: … %s …", got, want)
				}
			}()
			f()
		}()
	}
}

// What a route decides is decided when the chain is built.
func TestRoutesDecide(t *testing.T) {
	const stays, goes, asks = "stands", "excluded", "asked"
	tests := []struct {
		cond  chain.Condition
		route string
		want  string
	}{
		{chain.Path("/api"), "GET /api/users", stays},
		{chain.Path("/api"), "/api", stays},
		{chain.Path("/api"), "/api/", stays},
		{chain.Path("/api"), "/apis", goes},
		{chain.Path("/api"), "/", asks},
		{chain.Path("/api"), "/{$}", goes},
		{chain.Path("/api"), "/{any}", asks},
		{chain.Path("/api"), "/{any}/x", asks},
		{chain.Path("/api/v1"), "/{any}/v2", goes},
		{chain.Path("/api/v1"), "/api/", asks},
		{chain.Path("/"), "/{rest...}", stays},
		{chain.Path("/u/{id}"), "/u/me", stays},
		{chain.Path("/u/{id}"), "/u/{$}", goes},
		{chain.Path("/u/{id}"), "/u", goes},
		{chain.Route("/u/me"), "/u/{id}", asks},
		{chain.Route("/u/{$}"), "/u/{id}", goes},
		{chain.Route("/u/{id}"), "/u/{name}", stays},
		{chain.Route("/u/"), "/u/{name}", stays},
		{chain.Route("/u/"), "/u", goes},
		{chain.Route("/u/{id}"), "/u/{name}/x", goes},
		{chain.Route("/u/{id}"), "/u/", asks},
		{chain.Route("GET /u"), "GET /u", stays},
		{chain.Route("GET /u"), "HEAD /u", stays},
		{chain.Route("HEAD /u"), "GET /u", asks},
		{chain.Route("GET /u"), "/u", asks},
		{chain.Route("GET /u"), "POST /u", goes},
		{chain.Route("a.org/u"), "a.org/u", stays},
		{chain.Route("a.org/u"), "/u", asks},
		{chain.Route("a.org/u"), "b.org/u", goes},
		{chain.Route("/u"), "b.org/u", stays},
		{chain.Route("/u//x"), "/u/{id}/x", stays},
		{chain.Route("/u/7/x"), "/u//x", asks},
		{chain.Route("/u/{id}"), "/u/{id:int}", stays},
		{chain.Route("/u/{id:int}"), "/u/{n:int}", stays},
		{chain.Route("/u/{id:int}"), "/u/{name:alpha}", goes},
		{chain.Route("/u/{id:int}"), "/u/{id:[0-9]+}", asks},
		{chain.Path("/u/{id:int}"), "/u/7/posts", stays},
		{chain.Method("GET", "POST"), "POST /", stays},
		{chain.Method("GET", "POST"), "PUT /", goes},
		{chain.Method("GET"), "/", asks},
		{chain.Not(chain.Path("/api")), "/api/", goes},
		{chain.Not(chain.Header("A")), "/api/", asks},
		{chain.All(chain.Header("A"), chain.Path("/api")), "/x", goes},
		{chain.All(chain.Header("A"), chain.Path("/api")), "/api", asks},
		{chain.Any(chain.Header("A"), chain.Path("/api")), "/api", stays},
		{chain.Any(chain.Header("A"), chain.Path("/api")), "/x", asks},
	}
	for _, tt := range tests {
		built := 0
		h := chain.Must(chain.New().For(tt.route).When(tt.cond, func(next http.Handler) http.Handler {
			built++
			return pass(next)
		}).Then(http.NotFoundHandler()))
		got, d := stays, chain.Describe(h)
		switch {
		case strings.Contains(d, "excluded"):
			got = goes
		case strings.Contains(d, "(when "):
			got = asks
		}
		if got != tt.want {
			t.Errorf("%v for %s: got %s, want %s", tt.cond, tt.route, got, tt.want)
		}
		if want := map[bool]int{true: 0, false: 1}[got == goes]; built != want {
			t.Errorf("%v for %s: built %d times, want %d", tt.cond, tt.route, built, want)
		}
	}
}

// finds reports whether the mux serves r by the only pattern that it has, told
// from redirects and refusals by the handler.
func finds(mux *http.ServeMux, r *http.Request) bool {
	h, _ := mux.Handler(r)
	_, ok := h.(*noop)
	return ok
}

// FuzzRoute holds conditions against http.ServeMux, and what a route decides
// against what its requests tell.
func FuzzRoute(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET /u/{id}", "/u/", "HEAD", "/u/7"},
		{"/a%2Fb/{$}", "a.org/{x}/{y...}", "GET", "/a%2Fb/"},
		{"/{a}/b", "/a/{b}", "POST", "/a/b"},
		{"a.org/", "POST /a/b", "POST", "/a//b/../b"},
		{"/{$}", "/", "CONNECT", "/%2F"},
		{"/a/{x...}", "/a/{y}/{$}", "GET", "/a/b/"},
		{"/...}", "/{a}", "0", "/x"},
		{"//", "/{a}/", "0", "/0/"},
		{"/a//b", "CONNECT /a//{b}", "CONNECT", "/a//b"},
	} {
		f.Add(seed[0], seed[1], seed[2], "a.org:80", seed[3])
	}
	f.Fuzz(func(t *testing.T, pattern, route, method, host, target string) {
		pmux, rmux := muxOf(pattern), muxOf(route)
		u, err := url.ParseRequestURI(target)
		if pmux == nil || rmux == nil || err != nil || u.Host != "" || !strings.HasPrefix(u.EscapedPath(), "/") {
			t.Skip("no pattern of a mux, or no path: nothing to compare")
		}
		r := &http.Request{Method: method, URL: u, Host: host, Header: http.Header{}}
		cond := chain.Route(pattern)
		got := cond.Match(r)
		clean := cleaned(r)
		if want := finds(pmux, clean); got != want {
			t.Errorf("%s %s%s by %q: got %t, want %t", method, host, target, pattern, got, want)
		}
		if !finds(rmux, clean) {
			return
		}
		if told := stands(t, chain.New().For(route).When(cond, mark), r); told != got {
			t.Errorf("%s %s%s by %q: got %t, for %q: %t", method, host, target, pattern, got, route, told)
		}
	})
}

// muxOf returns a mux of the one pattern, nil if that is none.
func muxOf(pattern string) (mux *http.ServeMux) {
	defer func() {
		if recover() != nil {
			mux = nil
		}
	}()
	mux = http.NewServeMux()
	mux.Handle(pattern, &noop{})
	return mux
}

// cleaned returns the request that a mux redirects r to until its path is
// clean.
func cleaned(r *http.Request) *http.Request {
	if r.Method == http.MethodConnect {
		return r
	}
	segs := []string{}
	escaped := r.URL.EscapedPath()
	for seg := range strings.SplitSeq(escaped, "/") {
		switch seg {
		case "", ".":
		case "..":
			segs = segs[:max(0, len(segs)-1)]
		default:
			segs = append(segs, seg)
		}
	}
	path := "/" + strings.Join(segs, "/")
	if strings.HasSuffix(escaped, "/") && path != "/" {
		path += "/"
	}
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return r
	}
	return &http.Request{Method: r.Method, URL: u, Host: r.Host, Header: r.Header}
}

func TestConditionsAllocateNothing(t *testing.T) {
	r := asking(t, "GET a.org:80/admin/users/7", "X-A", "1")
	for _, cond := range []chain.Condition{
		chain.Path("/admin"), chain.Route("GET a.org/admin/users/{id}"), chain.Method("POST", "GET"), chain.Header("x-a", "1"),
		chain.All(chain.Not(chain.Path("/x")), chain.Any(chain.Header("X-B"), chain.Method("GET"))),
	} {
		if n := testing.AllocsPerRun(100, func() {
			if !cond.Match(r) {
				t.Errorf("%v does not hold", cond)
			}
		}); n != 0 {
			t.Errorf("%v: got %v allocations", cond, n)
		}
	}
}

func BenchmarkConditions(b *testing.B) {
	r := asking(b, "GET a.org/admin/users/7", "X-A", "1")
	for name, cond := range map[string]chain.Condition{
		"path": chain.Path("/admin"), "route": chain.Route("GET /admin/users/{id}"), "method": chain.Method("GET"), "header": chain.Header("X-A"),
	} {
		b.Run("by="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cond.Match(r)
			}
		})
	}
}
