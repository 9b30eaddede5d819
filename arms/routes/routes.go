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

// Fixed returns the answer of a route without parameters. The caller must not
// change the body.
func (r Route) Fixed() (contentType string, body []byte) {
	if r.Method == http.MethodGet && r.Path() == "/ping" {
		return JSON, []byte(Pong)
	}
	return Text, []byte(r.Path())
}

// Values returns the body of a route with parameters, of content type Text:
// the value of each name, joined by commas. It allocates the body alone.
func Values(names []string, value func(name string) string) []byte {
	body := make([]byte, 0, 64) // enough for the targets that studies ask for
	for i, name := range names {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, value(name)...)
	}
	return body
}

// Write answers with status 200 where answers go to an http.ResponseWriter. A
// failure means that the client has gone, which no arm cares about.
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
	names := r.Params()
	if names == nil {
		contentType, body := r.Fixed()
		return Example{r.Method, r.Path(), contentType, string(body)}
	}
	value := func(name string) string { return name + "-1" }
	path := r.Path()
	for _, name := range names {
		path = strings.Replace(path, "{"+name+"}", value(name), 1)
	}
	return Example{r.Method, path, Text, string(Values(names, value))}
}
