package router_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/router"
)

func TestURL(t *testing.T) {
	tests := []struct {
		pattern string
		params  []string
		want    string // the URL or part of the error
	}{
		{"/", nil, "/"},
		{"/{$}", nil, "/"},
		{"GET /a/", nil, "/a/"},
		{"GET /a/{$}", nil, "/a/"},
		{"h.com/a", nil, "//h.com/a"},
		{"/u/{x}", []string{"x", "7"}, "/u/7"},
		{"/u/{x}/p/{y}", []string{"y", "b", "x", "a"}, "/u/a/p/b"},
		{"/u/{x}", []string{"x", "a/b c%?#;"}, "/u/a%2Fb%20c%25%3F%23%3B"},
		{"/u/{x}", []string{"x", "é"}, "/u/%C3%A9"},
		{"/f/{r...}", []string{"r", "a b/c?d/"}, "/f/a%20b/c%3Fd/"},
		{"/f/{r...}", []string{"r", ""}, "/f/"},
		{"/a%2Fb/%25/{x}", []string{"x", "1"}, "/a%2Fb/%25/1"},
		{"/u/{x:int}", []string{"x", "-7"}, "/u/-7"},

		{"/u/{x}", nil, `"x" is missing`},
		{"/u/{x}", []string{"x"}, `"x" has no value`},
		{"/u/{x}", []string{"x", "1", "x", "2"}, `"x" is given twice`},
		{"/u/{x}", []string{"x", "1", "y", "2"}, `"y" is not one`},
		{"/u/{x}", []string{"x", ""}, "cannot be a segment"},
		{"/u/{x}", []string{"x", ".."}, "cannot be a segment"},
		{"/u/{x}", []string{"x", "/"}, "cannot be a segment"},
		{"/f/{r...}", []string{"r", "a/../b"}, "dot segment"},
		{"/f/{r...}", []string{"r", "/a"}, "empty or a dot"},
		{"/u/{x:int}", []string{"x", "a"}, "is not int"},
	}
	for _, tt := range tests {
		rt := new(router.Router)
		if err := rt.Add(router.Route{Pattern: tt.pattern, Handler: show(tt.pattern), Name: "n"}); err != nil {
			t.Fatal(err)
		}
		u, err := rt.URL("n", tt.params...)
		if err != nil {
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s with %q: got %v, want %s", tt.pattern, tt.params, err, tt.want)
			}
			continue
		}
		if u.String() != tt.want {
			t.Errorf("%s with %q: got %s, want %s", tt.pattern, tt.params, u, tt.want)
		}
	}
	if _, err := new(router.Router).URL("none"); err == nil || !strings.Contains(err.Error(), `no route has the name "none"`) {
		t.Errorf("unknown name: got %v", err)
	}
}

// TestURLComesBack asks for built URLs and expects the values that went in.
func TestURLComesBack(t *testing.T) {
	rt := new(router.Router)
	if err := rt.Add(router.Route{Pattern: "/a/{x}/%2e/{y}/{r...}", Handler: show("h"), Name: "n"}); err != nil {
		t.Fatal(err)
	}
	built := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		value := func() string {
			var b strings.Builder
			for range rng.IntN(4) {
				b.WriteString(pick(rng, "a", ".", "..", "/", "%", "%2F", "é", " ", "?", "\x00", "\xff", ":", "+", ";"))
			}
			return b.String()
		}
		x, y, r := value(), value(), value()
		u, err := rt.URL("n", "x", x, "y", y, "r", r)
		if err != nil {
			continue
		}
		built++
		want := fmt.Sprintf("handler h, pattern /a/{x}/%%2e/{y}/{r...}, x=%q, y=%q, z=\"\", r=%q", x, y, r)
		if got := ask(rt, request("GET", "", u.String())); got.body != want {
			t.Errorf("%s: got %+v, want %s", u, got, want)
		}
	}
	if built < 500 {
		t.Errorf("only %d URLs of 3000 could be built", built)
	}
}
