package http1_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// swap turns the case of every letter.
func swap(s string) string {
	return strings.Map(func(r rune) rune {
		if u := strings.ToUpper(string(r)); u != string(r) {
			return rune(u[0])
		}
		return rune(strings.ToLower(string(r))[0])
	}, s)
}

// values that the fields with a meaning to the reader must have.
func valueOf(name string) string {
	switch name {
	case "Content-Length":
		return "1"
	case "Transfer-Encoding":
		return "chunked"
	}
	return "x"
}

// TestKnownNames shows that no two names share a slot, which would cost one of
// them its place: each is found in any spelling, without an allocation.
func TestKnownNames(t *testing.T) {
	names := http1.KnownNames()
	if len(names) > 63 {
		t.Errorf("%d known names and the unknown do not fit a word of 64 bits", len(names))
	}
	h := make(http.Header, 4)
	vals := make([]string, 0, 4)
	var p http1.Head
	var o http1.Options
	for _, name := range names {
		if http.CanonicalHeaderKey(name) != name {
			t.Errorf("%q is not in canonical form", name)
		}
		for _, spelling := range []string{name, strings.ToLower(name), strings.ToUpper(name), swap(name)} {
			in := "GET / HTTP/1.1\r\n" + spelling + ": " + valueOf(name) + "\r\n"
			if name != "Host" {
				in += "Host: a\r\n"
			}
			in += "\r\n"
			var err error
			allocs := testing.AllocsPerRun(10, func() {
				clear(h)
				err = p.Parse(in, h, vals, &o)
			})
			if err != nil {
				t.Fatalf("%s: %v", spelling, err)
			}
			if allocs != 0 {
				t.Errorf("%s: %v allocations, want 0", spelling, allocs)
			}
			kept := name != "Host" && name != "Transfer-Encoding"
			if _, ok := h[name]; ok != kept {
				t.Errorf("%s: fields %v", spelling, h)
			}
		}
	}
}

func TestUnknownNames(t *testing.T) {
	tests := map[string]string{
		"x-a": "X-A", "X-A": "X-A", "X-ODD-name": "X-Odd-Name", "a": "A", "!": "!",
		"Hosu": "Hosu", "hos": "Hos", "connectiom": "Connectiom", "x-forwarded-fop": "X-Forwarded-Fop",
		"etag": "Etag", "ETag": "Etag", "www-authenticate": "Www-Authenticate", "-": "-", "_host": "_host",
	}
	for in, want := range tests {
		h := http.Header{}
		var p http1.Head
		if err := p.Parse("GET / HTTP/1.0\r\n"+in+": v\r\n\r\n", h, nil, &http1.Options{}); err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got := h[want]; len(h) != 1 || len(got) != 1 || got[0] != "v" {
			t.Errorf("%q: fields %v, want %s", in, h, want)
		}
	}
}
