package router_test

import (
	"net/http"
	"testing"

	"github.com/tarehq/tare/serve/router"
)

// TestMethods puts every byte into a pattern's method. Which methods there are is
// also http.ServeMux's verdict.
func TestMethods(t *testing.T) {
	const signs = "!#$%&'*+-.^_`|~" // RFC 9110, section 5.6.2
	methods := []string{"GET", "get", "M-SEARCH", "GE(T", "(GET", "GET)", "GÉT", "GET,POST", "GET:", "\"GET\"", "G\x00T", ""}
	for c := range 256 {
		b := byte(c)
		methods = append(methods, string([]byte{b}), string([]byte{'G', b}), string([]byte{b, 'T'}))
	}
	for _, m := range methods {
		for _, gap := range []string{" ", "\t", " \t "} {
			pattern := m + gap + "/a"
			want, got := try(http.NewServeMux(), pattern), try(new(router.Router), pattern)
			if (got == nil) != (want == nil) {
				t.Errorf("%q: got %v, ServeMux says %v", pattern, got, want)
			}
		}
	}
	for c := range 256 {
		b := byte(c)
		want := '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		for i := range signs {
			want = want || signs[i] == b
		}
		if b == ' ' || b == '\t' {
			continue // these end a method
		}
		pattern := string([]byte{b}) + " /a"
		if err := try(new(router.Router), pattern); (err == nil) != want {
			t.Errorf("%q: got %v, want it taken: %v", pattern, err, want)
		}
	}
}
