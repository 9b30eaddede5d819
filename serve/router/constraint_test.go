package router_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/router"
)

func TestConstraints(t *testing.T) {
	tests := []struct {
		spec   string
		is, no []string
	}{
		{"int", []string{"0", "-1", "007", "9223372036854775807", "-9223372036854775808"}, []string{"+1", "-", "1.5", "a", "9223372036854775808", "0x1", "1_0", "٣"}},
		{"uint", []string{"0", "18446744073709551615", "00"}, []string{"-1", "+1", "18446744073709551616", "1a"}},
		{"alpha", []string{"a", "Zz"}, []string{"a1", "é", "a-b"}},
		{"alnum", []string{"a", "1", "aZ9"}, []string{"a_b", "é"}},
		{"hex", []string{"0", "aF9"}, []string{"g", "0x1"}},
		{"uuid", []string{"123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-00000000000F"}, []string{"123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g", "123e4567-e89b-12d3-a456-4266141740000", "123e4567-e89b-12d3-a456+426614174000"}},
		{"[0-9]{4}", []string{"2026"}, []string{"202", "20266", "x2026"}},
		{"json|xml", []string{"json", "xml"}, []string{"jsonx", "xxml", "jso"}},
		{"(word)", []string{"word"}, []string{"words"}},
		{"(?i)abc", []string{"abc", "ABC"}, []string{"ab"}},
		{"a.b", []string{"a/b", "a%b", "aéb"}, []string{"ab"}},
	}
	for _, tt := range tests {
		rt := new(router.Router)
		rt.Handle("/{x:"+tt.spec+"}", show("checked"))
		rt.Handle("/{x}", show("any"))
		for want, values := range map[string][]string{"checked": tt.is, "any": tt.no} {
			for _, v := range values {
				got := ask(rt, request("GET", "", "/"+url.PathEscape(v))).body
				if !strings.HasPrefix(got, "handler "+want+",") || !strings.Contains(got, fmt.Sprintf("x=%q", v)) {
					t.Errorf("{x:%s} and %q: got %s, want handler %s and the value", tt.spec, v, got, want)
				}
			}
		}
	}
}

func TestConstraintErrors(t *testing.T) {
	tests := []struct{ pattern, want string }{
		{"/{x:}", "nothing after the colon"},
		{"/{x:itn}", `unknown kind "itn"`},
		{"/{x:[}", "missing closing ]"},
		{"/{x:^a$}", "not needed and not supported"},
		{`/{x:a\b}`, "not needed and not supported"},
		{"/{x:a)|(b}", "unexpected )"},
		{`/{x:\x2f}`, "no path segment can match"},
		{"/{x:()}", "no path segment can match"},
		{"/{x:[^ ]+}", `in a constraint \x20`},
		{"/{x...:a}", "takes no constraint"},
		{"/{x:int}/{x:int}", "is there twice"},
		{"/{:int}", "no name"},
		{"/{$:int}", "not a Go identifier"},
	}
	for _, tt := range tests {
		err := new(router.Router).Add(router.Route{Pattern: tt.pattern, Handler: show("")})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.pattern, err, tt.want)
		}
	}
}

func TestConstraintConflicts(t *testing.T) {
	tests := []struct {
		a, b    string
		example string // "" = no conflict
	}{
		{"/{x:int}", "/{y:alpha}", ""},
		{"/{x:int}", "/{y}", ""},
		{"/{x:int}", "/{y:int}", "GET /0"},
		{"/{x:int}", "/{y:uint}", "GET /0"},
		{"/{x:int}", "/{y:[0-9]{3}}", "GET /000"},
		{"/{x:int}", "/7", ""},
		{"/{x:int}/a", "/{y}/a", ""},
		{"/{x:int}/{z}", "/{y}/a", "GET /0/a"},
		{"/{x:int}/{z:int}", "/{y}/a", ""},
		{"/{x:hex}", "/{y:[g-z]+}", ""},
		{"/{x:hex}", "/{y:[f-z]+}", "GET /f"},
		{"/{x:[.]+}", "/{y:.{2,3}}", "GET /%2E%2E"},
		{"/{x:[.]?[a-z]*}", "/{y:[.]?[0-9]*}", "GET /%2E"}, // the dot is a value, encoded
		{"/{x:a*}", "/{y:b*}", ""},
		{"/{x:(?i)k}", "/{y:\u212a}", "GET /%E2%84%AA"}, // the Kelvin sign folds to k
		{"/{x:[^a]}", "/{y:[^b]}", "GET /x"},
		{"/{x:[^\\n]}", "/{y:[\\n\\x0b]}", "GET /%0B"},
		{"/{x:(a|b)*c}", "/{y:[ab]{3}.}", "GET /aaac"},
		{"/{x:.*a}", "/{y:.*b}", ""},
		{"/{x:int}/", "/{y:alpha}/{z...}", ""},
		{"GET /{x:int}", "POST /{y:int}", ""},
		{"/{x:int}/", "/{y:uint}/b", "GET /0/b"},
	}
	for _, tt := range tests {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			rt := new(router.Router)
			rt.Handle(pair[0], show("a"))
			err := rt.Add(router.Route{Pattern: pair[1], Handler: show("b")})
			var conflict *router.ConflictError
			if errors.As(err, &conflict) != (tt.example != "") || err != nil && conflict == nil {
				t.Errorf("%s and %s: got %v, want a conflict: %t", pair[0], pair[1], err, tt.example != "")
				continue
			}
			if conflict == nil {
				continue
			}
			if conflict.Example != tt.example {
				t.Errorf("%s and %s: got example %s, want %s", pair[0], pair[1], conflict.Example, tt.example)
			}
			checkExample(t, conflict)
		}
	}
}

// TestConstrainedTables compares what is chosen from generated tables with
// constraints to what trying all patterns one by one says.
func TestConstrainedTables(t *testing.T) {
	specs := []string{"", ":int", ":uint", ":alpha", ":[0-9]{2}", ":a+", ":b|12", ":hex"}
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		rt := new(router.Router)
		var table []string
		for range 2 + rng.IntN(8) {
			pattern := ""
			for i := range 1 + rng.IntN(3) {
				pattern += "/" + pick(rng, "a", "12", "b", fmt.Sprintf("{%s%s}", names[i], pick(rng, specs...)))
			}
			pattern += pick(rng, "", "", "", "/", "/{$}", "/{r...}")
			err := rt.Add(router.Route{Pattern: pattern, Handler: show(pattern)})
			var conflict *router.ConflictError
			switch {
			case errors.As(err, &conflict):
				checkExample(t, conflict)
			case err != nil:
				t.Fatalf("seed %d: %v", seed, err)
			default:
				table = append(table, pattern)
			}
		}
		for range 30 {
			path := ""
			for range 1 + rng.IntN(3) {
				path += "/" + pick(rng, "a", "aa", "b", "1", "12", "-1", "abc", "é")
			}
			path += pick(rng, "", "", "/")
			want := byHand(table, path)
			got := ask(rt, request("GET", "", path))
			if got.status == 307 {
				continue // TestAsServeMux looks after redirects
			}
			if got.pattern != want {
				t.Fatalf("seed %d: %s in %q: got %q, want %q", seed, path, table, got.pattern, want)
			}
		}
	}
}

// byHand returns the pattern that matches and comes first by the ranks of its
// segments.
func byHand(table []string, path string) string {
	best, ranks := "", []int(nil)
	for _, pattern := range table {
		if r, ok := rank(pattern, path); ok && (ranks == nil || slices.Compare(r, ranks) < 0) {
			best, ranks = pattern, r
		}
	}
	return best
}

func rank(pattern, path string) (ranks []int, ok bool) {
	ps, vs := strings.Split(pattern, "/")[1:], strings.Split(path, "/")[1:]
	for i, p := range ps {
		if p == "{r...}" || p == "" {
			return append(ranks, 3), len(vs) > i
		}
		if i >= len(vs) {
			return nil, false
		}
		name, spec, checked := strings.Cut(strings.Trim(p, "{}"), ":")
		if checked && strings.HasSuffix(p, "}}") {
			spec += "}"
		}
		switch {
		case p == "{$}":
			ok = vs[i] == ""
			ranks = append(ranks, 0)
		case p[0] != '{':
			ok = vs[i] == name
			ranks = append(ranks, 0)
		case checked:
			ok = vs[i] != "" && regexp.MustCompile(`^(?:`+oracles(spec)+`)$`).MatchString(vs[i])
			ranks = append(ranks, 1)
		default:
			ok = vs[i] != ""
			ranks = append(ranks, 2)
		}
		if !ok {
			return nil, false
		}
	}
	return ranks, len(ps) == len(vs)
}

func oracles(spec string) string {
	switch spec {
	case "int":
		return "-?[0-9]+"
	case "uint":
		return "[0-9]+"
	case "alpha":
		return "[a-zA-Z]+"
	case "hex":
		return "[0-9a-fA-F]+"
	default:
		return spec
	}
}

// TestConstraintConflictsOfSpellings holds literals that match in any case against
// constraints, some of whose values they are in one case alone.
func TestConstraintConflictsOfSpellings(t *testing.T) {
	tests := []struct{ a, b, example string }{
		{"/abc/{y}", "/{x:[A-Z]+}/b", "GET /ABC/b"},
		{"/abc/{y}", "/{x:[a-z]+}/b", "GET /abc/b"},
		{"/ABC/{y}", "/{x:[a-z]+}/b", "GET /abc/b"},
		{"/a.%C3%A9b/{y}", "/{x:[^b]+}/b", "GET /a.%C3%A9B/b"},
		{"/abc/{y}", "/{x:[A-Z]{2}}/b", ""},
		{"/abc/{y}", "/{x:int}/b", ""},
		{"/k/{y}", "/{x:\u212a}/b", ""}, // only A to Z count
		{"/abc", "/{x:[A-Z]+}", ""},     // the literal goes first
	}
	for _, tt := range tests {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			rt := &router.Router{Case: router.CaseFold}
			rt.Handle(pair[0], show("a"))
			err := rt.Add(router.Route{Pattern: pair[1], Handler: show("b")})
			var conflict *router.ConflictError
			if errors.As(err, &conflict); (conflict == nil) != (tt.example == "") || conflict != nil && conflict.Example != tt.example {
				t.Errorf("%s and %s: got %v, want example %q", pair[0], pair[1], err, tt.example)
			}
			if conflict == nil {
				continue
			}
			for _, pattern := range pair {
				alone := &router.Router{Case: router.CaseFold}
				alone.Handle(pattern, show(pattern))
				if got := ask(alone, request("GET", "", strings.TrimPrefix(conflict.Example, "GET "))); got.status != http.StatusOK {
					t.Errorf("%s does not match example %s", pattern, conflict.Example)
				}
			}
		}
	}
}
