// Package routes holds the route tables that arms are compared with.
//
// A table is a list of routes with patterns as http.ServeMux takes them; a
// framework with another syntax converts them. The tables are
//
//	ping    GET /ping alone
//	ten     ten routes of a small service
//	user    the ten static routes /api/v1/user/0 to 9 of a published comparison
//	github  the 203 routes of the GitHub API that router benchmarks have used since 2013
//	static, gplus, parse  the other tables of those benchmarks
//
// and three that are made to any size: [Service], where all kinds of routes stand
// together, [Constrained], where its parameters are held to an expression, and
// [OfKind], where one kind stands alone.
//
// What a route answers follows from the route, so that arms can be held to the
// same bytes: GET /ping answers [Pong], a route with parameters their values
// joined by commas, any other its path, and a path without a route the status
// 404 and [NotFound]. Bodies are made without encoding or formatting: what is
// compared is how frameworks route and write, not how they encode.
package routes

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The content types and fixed bodies of the answers.
const (
	JSON     = "application/json; charset=utf-8"
	Text     = "text/plain; charset=utf-8" // every answer but Pong
	Pong     = `{"message":"pong"}`
	NotFound = "404 page not found\n" // as http.NotFound answers
)

// Route is one row of a table.
type Route struct {
	Method string
	// Pattern is such as /users/{id}. /{$} is the root alone, {name...} what is
	// left of the path, and {name:expr} a parameter whose values are all of an
	// expression, which ServeMux does not know.
	Pattern string
}

// segment is the part of a pattern between two slashes.
type segment struct {
	text string // as in the pattern
	name string // of the parameter; "" = the segment is fixed
	expr string // that the parameter's values match; "" = any
	rest bool   // the parameter is what is left of the path
}

func (r Route) segments() []segment {
	parts := strings.Split(strings.TrimSuffix(r.Pattern, "{$}"), "/")
	segs := make([]segment, len(parts))
	for i, text := range parts {
		segs[i].text = text
		name, ok := strings.CutPrefix(text, "{")
		if !ok {
			continue
		}
		name, segs[i].rest = strings.CutSuffix(strings.TrimSuffix(name, "}"), "...")
		segs[i].name, segs[i].expr, _ = strings.Cut(name, ":")
	}
	return segs
}

// spell joins the segments, each as the function writes it.
func (r Route) spell(write func(segment) string) string {
	segs := r.segments()
	parts := make([]string, len(segs))
	for i, seg := range segs {
		parts[i] = seg.text
		if seg.name != "" {
			parts[i] = write(seg)
		}
	}
	return strings.Join(parts, "/")
}

// Params returns the names of the pattern's parameters, in order; nil if it
// has none.
func (r Route) Params() []string {
	var names []string
	for _, seg := range r.segments() {
		if seg.name != "" {
			names = append(names, seg.name)
		}
	}
	return names
}

// Path returns the pattern for frameworks that write parameters as {id} or
// {id:expr}, what is left of a path as *, and match the root exactly.
func (r Route) Path() string {
	return r.spell(func(seg segment) string {
		if seg.rest {
			return "*"
		}
		return seg.text
	})
}

// Colon returns the pattern for frameworks that write parameters as :id, what is
// left of a path as *name, and have no expressions.
func (r Route) Colon() string {
	return r.spell(func(seg segment) string {
		if seg.rest {
			return "*" + seg.name
		}
		return ":" + seg.name
	})
}

// Expr returns the regular expression of the paths that match, with a group for
// each parameter.
func (r Route) Expr() string {
	return "^" + r.spell(func(seg segment) string {
		switch {
		case seg.rest:
			return "(.*)"
		case seg.expr != "":
			return "(" + seg.expr + ")"
		}
		return "([^/]+)"
	}) + "$"
}

// Answer returns what the route answers.
func (r Route) Answer() Answer {
	names := r.Params()
	switch {
	case names != nil:
		segs := r.segments()
		return Answer{names: names, rest: segs[len(segs)-1].rest, contentType: Text}
	case r.Method == http.MethodGet && r.Path() == "/ping":
		return Answer{contentType: JSON, fixed: []byte(Pong)}
	default:
		return Answer{contentType: Text, fixed: []byte(r.Path())}
	}
}

// Answer is what a route answers, with status 200. It is safe for concurrent
// use.
type Answer struct {
	names       []string // of the parameters; nil = fixed
	rest        bool     // the last is what is left of the path
	contentType string
	fixed       []byte
}

// Make returns the answer to a request whose parameters have these values. It
// asks for a value once for each parameter, in order, and allocates nothing but
// a body that depends on them. The caller must not change the body.
//
// What is left of a path is "*" to some frameworks, whatever its name, and
// begins with the slash before it to others: both are seen to here. So where
// that is empty it is asked for a second time, as "*".
func (a *Answer) Make(value func(name string) string) (contentType string, body []byte) {
	if a.names == nil {
		return a.contentType, a.fixed
	}
	body = make([]byte, 0, 64) // enough for the targets that studies ask for
	for i, name := range a.names {
		if i > 0 {
			body = append(body, ',')
		}
		v := value(name)
		if a.rest && i == len(a.names)-1 {
			v = remainder(v, value)
		}
		body = append(body, v...)
	}
	return a.contentType, body
}

// remainder is what is left of a path, of which a framework says v by its name.
func remainder(v string, value func(name string) string) string {
	if v == "" {
		v = value("*")
	}
	return strings.TrimPrefix(v, "/")
}

// Write makes the answer and sends it, for frameworks whose handlers get an
// http.ResponseWriter.
func (a *Answer) Write(w http.ResponseWriter, value func(name string) string) {
	contentType, body := a.Make(value)
	Write(w, contentType, body)
}

// Write answers with status 200. A failure means that the client has gone,
// which no arm cares about.
func Write(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body)
}

// Table is a route table. As a flag's value it is chosen by its name.
type Table []Route

// Flag defines the flag -routes of an arm, to be read after flag.Parse. Its
// default is the table ping.
func Flag() *Table {
	t := Ping()
	flag.Var(&t, "routes", "route `table` to serve: ping, ten, user, github, static, gplus, parse or a kind and its size, such as service:100")
	return &t
}

// Set makes t the table of that name: ping, ten, user, github, static, gplus, parse, or
// service, constrained, static, parameter, regexp or wildcard with a number of routes,
// such as service:100.
func (t *Table) Set(name string) error {
	fixed := map[string]func() Table{"ping": Ping, "ten": Ten, "user": User, "github": GitHub, "static": Static, "gplus": GPlus, "parse": Parse}
	if table, ok := fixed[name]; ok {
		*t = table()
		return nil
	}
	kind, size, _ := strings.Cut(name, ":")
	sized := map[string]func(int) (Table, error){"service": Service, "constrained": Constrained}
	for kind := range kinds() {
		sized[kind] = func(n int) (Table, error) { return OfKind(kind, n) }
	}
	if _, ok := sized[kind]; !ok {
		return fmt.Errorf("no such table: there are %s, service:N, constrained:N and, of one kind, %s:N",
			strings.Join(slices.Sorted(maps.Keys(fixed)), ", "), strings.Join(slices.Sorted(maps.Keys(kinds())), ":N, "))
	}
	n, err := strconv.Atoi(size)
	if err != nil {
		return fmt.Errorf("%q is no number of routes", size)
	}
	table, err := sized[kind](n)
	if err != nil {
		return err
	}
	*t = table
	return nil
}

// String tells how many routes the table has.
func (t *Table) String() string { return fmt.Sprintf("%d routes", len(*t)) }

// Example is a request that a route matches and the answer to it, of status 200.
type Example struct {
	Method, Path      string
	ContentType, Body string
}

// Example returns a request for the route in which every parameter has a value
// that begins with its name, or is 42 where it must match an expression.
func (r Route) Example() Example {
	var values []string
	path := r.spell(func(seg segment) string {
		v := seg.name + "-1"
		if seg.expr != "" {
			v = "42"
		}
		values = append(values, v)
		return v
	})
	answer := r.Answer()
	next := 0
	contentType, body := answer.Make(func(string) string { next++; return values[next-1] })
	return Example{r.Method, path, contentType, string(body)}
}
