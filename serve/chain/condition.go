package chain

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// Condition says for which requests a layer stands; for the others the request
// passes on to the next. What does not depend on the request, and what a chain's
// route decides ([Chain.For]), is decided when the chain is built: such a layer
// is there or not, at no cost a request. The others cost a comparison.
//
// A Condition is made by [Path], [Route], [Method], [Header], [Env] and [Ask], and
// of others by [Not], [All] and [Any]. Those panic if they are given no method, one in small
// letters, or what is no path, route, function or condition. It is safe for concurrent use.
type Condition interface {
	// Match reports whether the layer stands for r.
	Match(r *http.Request) bool
	// decide tells the same beforehand of all requests that match the route;
	// nil is any.
	decide(route *pattern.Pattern) truth
}

// truth is what is known of a condition.
type truth int8

const (
	no truth = iota - 1
	unknown
	yes
)

// truthOf returns yes or, if that is not so, unknown or no.
func truthOf(is, maybe bool) truth {
	switch {
	case is:
		return yes
	case maybe:
		return unknown
	}
	return no
}

func (t truth) and(u truth) truth { return min(t, u) }

// Path holds for the path and all below it: /admin for /admin and /admin/users,
// not for /administrators. {name} is any one segment. Paths are compared segment
// by segment, as http.ServeMux does, cleaned and then unescaped. A slash at the
// end changes nothing.
//
// A layer that guards stands more surely on the routes themselves, or around all: what a
// handler behind makes of a path is its own affair. Some take /ADMIN for /admin, and
// http.FileServer takes /x/..%2fadmin for it.
func Path(path string) Condition {
	ps, err := parseUnder(path)
	if err != nil {
		panic(fmt.Sprintf("chain: path %q: %v", path, err))
	}
	return &matches{"path " + path, ps}
}

// Route holds for what http.ServeMux would find for the pattern, which may have the
// constraints of package router.
func Route(route string) Condition {
	p, err := parse(route)
	if err != nil {
		panic(fmt.Sprintf("chain: route %q: %v", route, err))
	}
	return &matches{"route " + route, []*pattern.Pattern{p}}
}

// matches holds for what one of the patterns matches.
type matches struct {
	text string
	ps   []*pattern.Pattern
}

func (c *matches) Match(r *http.Request) bool { return pattern.AnyMatches(c.ps, r) }
func (c *matches) String() string             { return c.text }

func (c *matches) decide(route *pattern.Pattern) truth {
	if route == nil {
		return unknown
	}
	t := no
	for _, p := range c.ps {
		t = max(t, truthOfRelation(pattern.Compare(p, route)))
	}
	return t
}

// Method holds for the methods; GET stands for HEAD, too, as it does in
// patterns.
func Method(methods ...string) Condition {
	if len(methods) == 0 {
		panic("chain: Method without methods can never hold")
	}
	for _, m := range methods {
		if capitals := strings.ToUpper(m); m != capitals {
			panic(fmt.Sprintf("chain: method %q: write %q, as requests do", m, capitals))
		}
	}
	return methodIs(methods)
}

type methodIs []string

func (c methodIs) Match(r *http.Request) bool {
	for _, m := range c {
		if pattern.CompareMethods(m, r.Method).Covers() {
			return true
		}
	}
	return false
}

func (c methodIs) decide(route *pattern.Pattern) truth {
	if route == nil {
		return unknown
	}
	t := no
	for _, m := range c {
		t = max(t, truthOfRelation(pattern.CompareMethods(m, route.Method)))
	}
	return t
}

func (c methodIs) String() string { return "method " + strings.Join(c, " or ") }

// Header holds for requests in which the field has one of the values in one of
// its lines, whole and with case, or with no values given: is there. Host is a field
// like any other, though servers keep it elsewhere.
func Header(name string, values ...string) Condition {
	return &headerIs{http.CanonicalHeaderKey(name), values}
}

type headerIs struct {
	name   string
	values []string
}

func (c *headerIs) Match(r *http.Request) bool {
	lines := r.Header[c.name]
	if c.name == "Host" && r.Host != "" {
		lines = []string{r.Host}
	}
	if len(c.values) == 0 {
		return len(lines) > 0
	}
	return slices.ContainsFunc(lines, func(line string) bool { return slices.Contains(c.values, line) })
}

func (c *headerIs) decide(*pattern.Pattern) truth { return unknown }
func (c *headerIs) String() string                { return among("header "+c.name, c.values) }

// Env holds if the environment variable has one of the values or, with no
// values given, is not empty. It is read now and never again.
func Env(name string, values ...string) Condition {
	now := os.Getenv(name)
	holds := now != ""
	if len(values) > 0 {
		holds = slices.Contains(values, now)
	}
	return &envIs{name, values, holds}
}

type envIs struct {
	name   string
	values []string
	holds  bool
}

func (c *envIs) Match(*http.Request) bool      { return c.holds }
func (c *envIs) decide(*pattern.Pattern) truth { return truthOf(c.holds, false) }
func (c *envIs) String() string                { return among("env "+c.name, c.values) }

func among(what string, values []string) string {
	if len(values) == 0 {
		return what
	}
	return what + " is " + strings.Join(values, " or ")
}

// Ask holds when f says so of the request. The text is for people: "a robot
// asks". f must be safe for concurrent use.
func Ask(text string, f func(*http.Request) bool) Condition {
	if f == nil {
		panic(fmt.Sprintf("chain: Ask %q without a function", text))
	}
	return &asked{text, f}
}

type asked struct {
	text string
	f    func(*http.Request) bool
}

func (c *asked) Match(r *http.Request) bool    { return c.f(r) }
func (c *asked) decide(*pattern.Pattern) truth { return unknown }
func (c *asked) String() string                { return c.text }

// Not holds where c does not.
func Not(c Condition) Condition {
	given("Not", c)
	return &not{c}
}

// given panics if one of the conditions is nil.
func given(to string, cs ...Condition) {
	if slices.Contains(cs, nil) {
		panic(fmt.Sprintf("chain: %s of a condition that is nil", to))
	}
}

type not struct{ c Condition }

func (n *not) Match(r *http.Request) bool          { return !n.c.Match(r) }
func (n *not) decide(route *pattern.Pattern) truth { return -n.c.decide(route) }
func (n *not) String() string                      { return fmt.Sprintf("not (%v)", n.c) }

// All holds where all of cs do; they are asked in order until one does not.
func All(cs ...Condition) Condition {
	given("All", cs...)
	return all(cs)
}

type all []Condition

func (a all) Match(r *http.Request) bool {
	for _, c := range a {
		if !c.Match(r) {
			return false
		}
	}
	return true
}

func (a all) decide(route *pattern.Pattern) truth {
	t := yes
	for _, c := range a {
		t = t.and(c.decide(route))
	}
	return t
}

func (a all) String() string { return joined(a, " and ") }

// Any holds where one of cs does; they are asked in order until one does.
func Any(cs ...Condition) Condition {
	given("Any", cs...)
	return anyOf(cs)
}

type anyOf []Condition

func (a anyOf) Match(r *http.Request) bool {
	for _, c := range a {
		if c.Match(r) {
			return true
		}
	}
	return false
}

func (a anyOf) decide(route *pattern.Pattern) truth {
	t := no
	for _, c := range a {
		t = max(t, c.decide(route))
	}
	return t
}

func (a anyOf) String() string { return joined(a, " or ") }

func joined(cs []Condition, by string) string {
	texts := make([]string, len(cs))
	for i, c := range cs {
		texts[i] = fmt.Sprintf("(%v)", c)
	}
	return strings.Join(texts, by)
}
