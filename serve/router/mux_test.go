package router_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/router"
)

// handlers is what a ServeMux and a Router have in common.
type handlers interface {
	http.Handler
	Handle(pattern string, h http.Handler)
	Handler(r *http.Request) (http.Handler, string)
}

// seen is what a request got and what became of it.
type seen struct {
	status                int
	location, allow, body string
	pattern               string // Request.Pattern after serving
	asked                 string // the pattern that Handler returns
}

// names are those of all wildcards in generated patterns.
var names = []string{"x", "y", "z", "r"}

// show answers with all that a router tells a handler.
func show(pattern string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "handler %s, pattern %s", pattern, r.Pattern)
		for _, name := range names {
			fmt.Fprintf(w, ", %s=%q", name, r.PathValue(name))
		}
	})
}

// try adds a route and reports whether that went well.
func try(h handlers, pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if err, ok = p.(error); !ok {
				panic(p)
			}
		}
	}()
	h.Handle(pattern, show(pattern))
	return nil
}

func ask(h handlers, r *http.Request) seen {
	_, asked := h.Handler(r)
	w := answer(h, r)
	return seen{w.Code, w.Header().Get("Location"), w.Header().Get("Allow"), w.Body.String(), r.Pattern, asked}
}

func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// request makes a request as a server would, or nil if the target is not valid.
func request(method, host, target string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil
	}
	return &http.Request{
		Method: method, Host: host, URL: u, RequestURI: target, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
}

// compare holds the two against each other for one request, save for CONNECT
// with an empty segment, where a ServeMux matches a wildcard without recording
// a value, so that PathValue panics, and CONNECT *, which no server passes on.
func compare(t *testing.T, mux, rt handlers, method, host, target string) {
	t.Helper()
	r, s := request(method, host, target), request(method, host, target)
	if r == nil || method == http.MethodConnect && (strings.Contains(r.URL.Path, "//") || r.URL.Path == "*") {
		return
	}
	if want, got := ask(mux, r), ask(rt, s); got != want {
		t.Errorf("%s %s at host %q: got %+v, want %+v", method, target, host, got, want)
	}
}

// pick returns one of the choices.
func pick(rng *rand.Rand, choices ...string) string { return choices[rng.IntN(len(choices))] }

// randomPattern returns a pattern that is likely to be valid and to meet others.
func randomPattern(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString(pick(rng, "", "", "GET ", "GET ", "HEAD ", "POST ", "PURGE ", "CONNECT ", "get\t"))
	b.WriteString(pick(rng, "", "", "", "", "h.com", "[::1]", "h.com:80"))
	for range rng.IntN(4) {
		b.WriteByte('/')
		b.WriteString(pick(rng, "a", "a", "b", "ab", "abc", "%61", "{x}", "{y}", "{z}", "a%2Fb", "%2F", "%25", "%2e", "é", "A"))
	}
	b.WriteString(pick(rng, "", "", "/", "/{$}", "/{r...}", "/a"))
	return b.String()
}

func randomPath(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(4) {
		b.WriteByte('/')
		b.WriteString(pick(rng, "a", "a", "a", "b", "b", "ab", "abc", "abd", "x1", "a%2Fb", "%2F", "%2f", "%25", "%252F", "a%25", "%2e%2e", "%2e", ".", "..", "...", ".a", "", "é", "%C3%A9", "A", "~", "a;b", "a=b"))
	}
	b.WriteString(pick(rng, "", "", "/", "?q=1", "/?q=a/b"))
	return b.String()
}

// TestAsServeMux adds generated tables to a ServeMux and a Router and asks both
// the same.
func TestAsServeMux(t *testing.T) {
	tables := uint64(3000)
	if testing.Short() {
		tables = 1000
	}
	for seed := range tables {
		rng := rand.New(rand.NewPCG(seed, 1))
		mux, rt := http.NewServeMux(), new(router.Router)
		var table []string
		for range 1 + rng.IntN(12) {
			pattern := randomPattern(rng)
			want, got := try(mux, pattern), try(rt, pattern)
			if (want == nil) != (got == nil) {
				t.Fatalf("seed %d: adding %q to %q: got %v, want %v", seed, pattern, table, got, want)
			}
			var conflict *router.ConflictError
			if errors.As(got, &conflict) != (want != nil && strings.Contains(want.Error(), "conflicts with")) {
				t.Fatalf("seed %d: adding %q to %q: got %v, want %v", seed, pattern, table, got, want)
			}
			if got == nil {
				table = append(table, pattern)
			} else if conflict != nil {
				checkExample(t, conflict)
			}
		}
		for range 40 {
			method := pick(rng, "GET", "GET", "HEAD", "POST", "PURGE", "CONNECT", "get", "")
			host := pick(rng, "", "h.com", "h.com:80", "[::1]:80", "[::1]", "x.com", "::1")
			compare(t, mux, rt, method, host, randomPath(rng))
		}
		if t.Failed() {
			t.Fatalf("seed %d: table %q", seed, table)
		}
	}
}

// checkExample checks that both patterns of a conflict match its example.
func checkExample(t *testing.T, c *router.ConflictError) {
	t.Helper()
	method, target, _ := strings.Cut(c.Example, " ")
	slash := strings.IndexByte(target, '/')
	if strings.HasSuffix(target[:slash], ":80") {
		return // a host with a port matches nothing but CONNECT
	}
	for _, pattern := range []string{c.Pattern, c.Other} {
		r := request(method, target[:slash], target[slash:])
		if method == http.MethodConnect {
			r.URL.Host = r.Host
		}
		rt := new(router.Router)
		rt.Handle(pattern, show(pattern))
		if got := ask(rt, r); got.pattern != pattern || got.status != http.StatusOK {
			t.Errorf("%q and %q conflict: example %q got %+v from %q", c.Pattern, c.Other, c.Example, got, pattern)
		}
	}
}
