package chain_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/chain"
)

func pass(next http.Handler) http.Handler { return &noop{next} }

// cacheHandler declares itself, as middlewares of a package of their own do.
type cacheHandler struct{ next http.Handler }

func (h *cacheHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.next.ServeHTTP(w, r) }

func (h *cacheHandler) ChainLayer() chain.Layer {
	return chain.Layer{
		Name:  "cache",
		Roles: []string{"store"},
		Rules: []chain.Rule{chain.After("auth", "it would answer those whom auth has not let in")},
	}
}

func cache(next http.Handler) http.Handler { return &cacheHandler{next} }

func TestOrder(t *testing.T) {
	layer := func(name string, rules ...chain.Rule) chain.Layer {
		return chain.Layer{Name: name, Wrap: pass, Rules: rules}
	}
	auth := chain.Layer{Name: "jwt", Roles: []string{"auth"}, Wrap: pass}
	declared := chain.Layer{Wrap: cache}
	tests := []struct {
		name   string
		layers []chain.Layer
		want   []string // parts of the errors; none: it is right
	}{
		{"cache after auth", []chain.Layer{auth, declared}, nil},
		{"cache before auth", []chain.Layer{declared, auth}, []string{
			"cache (layer 1) must not stand before jwt (layer 2): it would answer those whom auth has not let in"}},
		{"cache twice", []chain.Layer{declared, auth, declared}, []string{"cache (layer 1) must not stand before jwt (layer 2)"}},
		{"rules taken off", []chain.Layer{{Wrap: cache, Rules: []chain.Rule{}}, auth}, nil},
		{"a declared role is there", []chain.Layer{auth, declared, layer("etag", chain.Needs("store", "why"))}, nil},
		{"a declared role stands right", []chain.Layer{layer("gzip", chain.Before("store", "why")), auth, declared}, nil},
		{"a declared role stands wrong", []chain.Layer{auth, declared, layer("gzip", chain.Before("store", "why"))}, []string{"gzip (layer 3) must not stand after cache (layer 2): why"}},
		{"roles taken off", []chain.Layer{auth, {Wrap: cache, Roles: []string{}}, layer("etag", chain.Needs("store", "why"))}, []string{"etag (layer 3) needs store before it: why"}},
		{"renamed", []chain.Layer{{Name: "pages", Wrap: cache}, auth}, []string{"pages (layer 1)"}},
		{"before", []chain.Layer{layer("a"), layer("b", chain.Before("a", "why"))}, []string{"b (layer 2) must not stand after a (layer 1): why"}},
		{"before, kept", []chain.Layer{layer("b", chain.Before("a", "why")), layer("a")}, nil},
		{"needs nothing there", []chain.Layer{layer("csrf", chain.Needs("session", "why"))}, []string{"csrf (layer 1) needs session before it: why"}},
		{"needs, after", []chain.Layer{layer("csrf", chain.Needs("session", "why")), layer("session")}, []string{"needs session before it"}},
		{"needs, kept", []chain.Layer{layer("session"), layer("csrf", chain.Needs("session", "why"))}, nil},
		{"first is not", []chain.Layer{layer("a"), layer("recover", chain.First("why"))}, []string{"recover (layer 2) must stand first, not after a (layer 1): why"}},
		{"two are first", []chain.Layer{layer("a", chain.First("why")), layer("b", chain.First("why")), layer("c")}, nil},
		{"last is not", []chain.Layer{layer("a", chain.Last("why")), layer("b")}, []string{"a (layer 1) must stand last, not before b (layer 2): why"}},
		{"two are last", []chain.Layer{layer("c"), layer("a", chain.Last("why")), layer("b", chain.Last("why"))}, nil},
		{"once, twice", []chain.Layer{layer("gzip", chain.Once("why")), layer("gzip", chain.Once("why"))}, []string{"gzip (layer 2) must not stand beside gzip (layer 1): why"}},
		{"once, says the first", []chain.Layer{layer("gzip", chain.Once("why")), layer("gzip")}, []string{"gzip (layer 1) must not stand beside gzip (layer 2): why"}},
		{"once, says the second", []chain.Layer{layer("gzip"), layer("gzip", chain.Once("why"))}, []string{"gzip (layer 2) must not stand beside gzip (layer 1): why"}},
		{"once", []chain.Layer{layer("gzip", chain.Once("why")), layer("other")}, nil},
		{"all at once", []chain.Layer{layer("a"), layer("b", chain.First("x"), chain.Before("a", "y"))}, []string{"first, not after", "must not stand after a"}},
		{"no middleware", []chain.Layer{auth, {Name: "gone"}, auth}, []string{"layer 2 has no middleware"}},
		{"no handler", []chain.Layer{auth, {Wrap: func(http.Handler) http.Handler { return nil }}}, []string{"chain.TestOrder (layer 2) returns no handler"}},
		{"no function", []chain.Layer{auth, {Wrap: func(http.Handler) http.Handler { return http.HandlerFunc(nil) }}}, []string{"chain.TestOrder (layer 2) returns no handler"}},
		{"left out", []chain.Layer{{Name: "cache", Wrap: cache, When: chain.Env("TARE_CHAIN_UNSET")}, auth}, nil},
	}
	for _, tt := range tests {
		_, err := new(chain.Chain).With(tt.layers...).Then(http.NotFoundHandler())
		if (err == nil) != (tt.want == nil) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.want)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %q, want %q in it", tt.name, err, want)
			}
		}
	}
}

func TestOrderErrorNamesBoth(t *testing.T) {
	_, err := chain.New(cache).With(chain.Layer{Name: "jwt", Roles: []string{"auth"}, Wrap: pass}).Then(http.NotFoundHandler())
	var order *chain.OrderError
	if !errors.As(err, &order) {
		t.Fatalf("got %v, want an OrderError", err)
	}
	if order.Layer != "cache" || order.Other != "jwt" || order.Why == "" {
		t.Errorf("got %+v, want the rule of cache about jwt", order)
	}
}

// A chain around a chain is checked as one, and so is what it does.
func TestChainsJoin(t *testing.T) {
	inner := chain.Must(new(chain.Chain).With(chain.Layer{Name: "auth", Wrap: pass}).Then(http.NotFoundHandler()))
	if _, err := chain.New(cache).Then(inner); err == nil || !strings.Contains(err.Error(), "must not stand before auth (layer 2)") {
		t.Errorf("cache around auth: got %v, want the broken rule", err)
	}
	inner = chain.Must(new(chain.Chain).With(chain.Layer{Name: "auth", Wrap: pass}, chain.Layer{Name: "gzip", Wrap: pass}).Then(http.NotFoundHandler()))
	outer, err := chain.New(pass).Then(inner)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := chain.Describe(outer), "chain_test.noop\n└─ auth\n  └─ gzip\n    └─ http.NotFound\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNoHandler(t *testing.T) {
	for _, none := range []http.Handler{nil, http.HandlerFunc(nil), (*chain.Handler)(nil)} {
		if _, err := chain.New(pass).Then(none); err == nil {
			t.Errorf("got no error for %T(nil)", none)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Must: got no panic")
		}
	}()
	chain.Must(new(chain.Chain).Then(nil))
}

// Chains that begin alike do not share what follows.
func TestChainsDoNotChange(t *testing.T) {
	start := chain.New(pass, pass)
	a, b := start.Use(cache), start.With(chain.Layer{Name: "b", Wrap: pass})
	for c, want := range map[*chain.Chain]int{start: 3, a: 4, b: 4} {
		if got := strings.Count(chain.Describe(chain.Must(c.Then(http.NotFoundHandler()))), "\n"); got != want {
			t.Errorf("got %d lines, want %d", got, want)
		}
	}
	if d := chain.Describe(chain.Must(a.Then(http.NotFoundHandler()))); !strings.Contains(d, "cache") {
		t.Errorf("got %s, want cache in it", d)
	}
}

// A layer that is decided to be out breaks no rule.
func TestLayerDecidedOut(t *testing.T) {
	auth := chain.Layer{Name: "jwt", Roles: []string{"auth"}, Wrap: pass, When: chain.Env("TARE_CHAIN_UNSET")}
	if _, err := chain.New(cache).With(auth).Then(http.NotFoundHandler()); err != nil {
		t.Errorf("cache before an auth that is out: got %v", err)
	}
	auth.When = nil
	if _, err := chain.New(cache).With(auth).Then(http.NotFoundHandler()); err == nil {
		t.Error("cache before auth: got no error")
	}
}

func off(next http.Handler) http.Handler { return next }

// A middleware that is switched off returns the next handler. It is not taken for
// that, neither by rules nor by Describe.
func TestLayerSwitchedOff(t *testing.T) {
	auth := chain.Layer{Name: "jwt", Roles: []string{"auth"}, Wrap: pass}
	if _, err := chain.New(off).With(auth).With(chain.Layer{Wrap: cache}).Then(http.NotFoundHandler()); err != nil {
		t.Errorf("off before auth: got %v", err)
	}
	h, err := chain.New(off, cache).Then(http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := chain.Describe(h), "chain.off\n└─ cache\n  └─ http.NotFound\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	once := func(next http.Handler) http.Handler { return &onceHandler{next} }
	if _, err := chain.New(off, once).Then(http.NotFoundHandler()); err != nil {
		t.Errorf("off around a layer that is there once: got %v", err)
	}
}

// onceHandler declares that it is there once.
type onceHandler struct{ http.Handler }

func (h *onceHandler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "tape", Rules: []chain.Rule{chain.Once("there is one tape")}}
}
