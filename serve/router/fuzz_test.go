package router_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/router"
)

// ours reports whether the pattern is one that a ServeMux takes otherwise: it has
// a constraint, or an empty segment.
func ours(pattern string) bool {
	i := strings.IndexByte(pattern, '/')
	return i >= 0 && (strings.Contains(pattern[i:], "{") && strings.Contains(pattern[i:], ":") || strings.Contains(pattern[i:], "//"))
}

// FuzzPattern compares which patterns are valid.
func FuzzPattern(f *testing.F) {
	for _, pattern := range []string{
		"", "/", "GET /", "GET\t /a/{x}/{r...}", "h.com/{$}", "/{x}/{x}", "/a{x}", "/{x", "/{$}/a", "/{...}", "/{x...}/a",
		"GE T /", " /", "a b c/", "{/", "a{/", "GET /a/../b", "CONNECT /a/../b", "/%2F", "/%zz", "/{é}", "/{1}", "/{x:int}", "/\x00\xff", "GET a",
	} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		got := try(new(router.Router), pattern)
		if ours(pattern) {
			return // it must not crash
		}
		if want := try(http.NewServeMux(), pattern); (want == nil) != (got == nil) {
			t.Errorf("%q: got %v, want %v", pattern, got, want)
		}
	})
}

// FuzzDispatch compares what becomes of a request, given patterns line by line.
func FuzzDispatch(f *testing.F) {
	for _, path := range []string{"/", "/a", "/a/", "/a/b/c", "/a%2Fb", "/a//b", "/../a", "/%2F", "/a/%2e%2e/b?q", "*", "http://h.com/a", "/é", "/a;b"} {
		f.Add("GET /a/{x}\n/a/b/{r...}\nPOST /{$}\nh.com/a/\n/a%2Fb\n/{x}/b/{y}/", "GET", "h.com", path)
		f.Add("/a\n/a/\nHEAD /b\nGET /b/{x}", "HEAD", "", path)
		f.Add("/{r...}\nCONNECT /a/{x}", "CONNECT", "h.com:80", path)
	}
	f.Fuzz(func(t *testing.T, patterns, method, host, target string) {
		mux, rt := http.NewServeMux(), new(router.Router)
		for pattern := range strings.SplitSeq(patterns, "\n") {
			if ours(pattern) {
				continue
			}
			want, got := try(mux, pattern), try(rt, pattern)
			if (want == nil) != (got == nil) {
				t.Fatalf("adding %q of %q: got %v, want %v", pattern, patterns, got, want)
			}
		}
		compare(t, mux, rt, method, host, target)
	})
}

// FuzzConstraint adds two constrained wildcards in one place. If they do not
// conflict, no value may satisfy both; if they do, the example must.
func FuzzConstraint(f *testing.F) {
	for _, spec := range []string{"int", "uint", "hex", "uuid", "a+", "[^a]", ".*", "(?i)k", "\\d{2,3}|x", "\\pL", "[\\x00-\\x{10ffff}]"} {
		f.Add(spec, "[a-f0-9]+", "a1")
		f.Add("alpha", spec, "k")
	}
	f.Fuzz(func(t *testing.T, a, b, value string) {
		if len(a)+len(b) > 60 || strings.ContainsAny(a+b, "/ \t") {
			return // a large repetition of repetitions takes its time
		}
		rt := new(router.Router)
		first, second := "/{x:"+a+"}", "/{y:"+b+"}"
		if try(rt, first) != nil {
			return
		}
		err := try(rt, second)
		if c, ok := err.(*router.ConflictError); ok {
			checkExample(t, c)
			return
		}
		if err != nil {
			return
		}
		r := request("GET", "", "/x")
		r.URL.Path, r.URL.RawPath = "/"+value, ""
		if strings.Contains(value, "/") {
			return
		}
		for _, pattern := range []string{first, second} {
			alone := new(router.Router)
			if err := try(alone, pattern); err != nil {
				t.Fatal(err)
			}
			if ask(alone, r).status != http.StatusOK {
				return
			}
		}
		t.Errorf("%s and %s do not conflict, but both match %q", first, second, value)
	})
}
