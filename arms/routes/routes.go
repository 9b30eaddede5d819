// Package routes holds the route tables that arms are compared with.
//
// A table is a list of routes with patterns as http.ServeMux takes them; a
// framework with another syntax converts them. The tables are
//
//	ping    GET /ping alone
//	ten     ten routes of a small service
//	github  the 203 routes of the GitHub API that router benchmarks have used since 2013
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
	Method  string
	Pattern string // such as /users/{id}; /{$} is the root alone
}

// Params returns the names of the pattern's parameters, in order; nil if it
// has none.
func (r Route) Params() []string {
	var names []string
	for seg := range strings.SplitSeq(r.Path(), "/") {
		if name, ok := param(seg); ok {
			names = append(names, name)
		}
	}
	return names
}

// Path returns the pattern for frameworks that write parameters as {id} and
// match the root exactly.
func (r Route) Path() string { return strings.TrimSuffix(r.Pattern, "{$}") }

// Colon returns the pattern for frameworks that write parameters as :id.
func (r Route) Colon() string {
	segs := strings.Split(r.Path(), "/")
	for i, seg := range segs {
		if name, ok := param(seg); ok {
			segs[i] = ":" + name
		}
	}
	return strings.Join(segs, "/")
}

func param(segment string) (name string, ok bool) {
	name, ok = strings.CutPrefix(segment, "{")
	return strings.TrimSuffix(name, "}"), ok
}

// Answer returns what the route answers.
func (r Route) Answer() Answer {
	names := r.Params()
	switch {
	case names != nil:
		return Answer{names: names, contentType: Text}
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
	contentType string
	fixed       []byte
}

// Make returns the answer to a request whose parameters have these values. It
// asks for a value once for each parameter, in order, and allocates nothing but
// a body that depends on them. The caller must not change the body.
func (a *Answer) Make(value func(name string) string) (contentType string, body []byte) {
	if a.names == nil {
		return a.contentType, a.fixed
	}
	body = make([]byte, 0, 64) // enough for the targets that studies ask for
	for i, name := range a.names {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, value(name)...)
	}
	return a.contentType, body
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
	flag.Var(&t, "routes", "route `table` to serve: ping, ten or github")
	return &t
}

// Set makes t the table of that name.
func (t *Table) Set(name string) error {
	tables := map[string]func() Table{"ping": Ping, "ten": Ten, "github": GitHub}
	table, ok := tables[name]
	if !ok {
		return fmt.Errorf("no such table: there are %s", strings.Join(slices.Sorted(maps.Keys(tables)), ", "))
	}
	*t = table()
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
// that begins with its name.
func (r Route) Example() Example {
	path := r.Path()
	value := func(name string) string { return name + "-1" }
	for _, name := range r.Params() {
		path = strings.Replace(path, "{"+name+"}", value(name), 1)
	}
	answer := r.Answer()
	contentType, body := answer.Make(value)
	return Example{r.Method, path, contentType, string(body)}
}
