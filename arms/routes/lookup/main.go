// Command lookup serves a route table without a router, in the same http.Server
// as the control:
//
//	regexps  a list of regular expressions, tried one after another
//	map      one map lookup, which finds static routes alone
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	by := flag.String("by", "regexps", "`means` of finding a route: regexps or map")
	flag.Parse()
	var h http.Handler
	switch *by {
	case "regexps":
		h = newList(*table)
	case "map":
		h = newExact(*table)
	default:
		fmt.Fprintf(os.Stderr, "lookup: no means %q: want regexps or map\n", *by)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

// list finds a route by trying all in turn.
type list []entry

type entry struct {
	method string
	path   *regexp.Regexp
	answer routes.Answer
}

func newList(table routes.Table) list {
	l := make(list, len(table))
	for i, r := range table {
		l[i] = entry{r.Method, regexp.MustCompile(r.Expr()), r.Answer()}
	}
	return l
}

func (l list) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i := range l {
		e := &l[i]
		if e.method != r.Method {
			continue
		}
		groups := e.path.FindStringSubmatch(r.URL.Path)
		if groups == nil {
			continue
		}
		next := 0
		e.answer.Write(w, func(string) string { next++; return groups[next] })
		return
	}
	http.NotFound(w, r)
}

// exact finds static routes alone.
type exact map[request]*routes.Answer

type request struct{ method, path string }

func newExact(table routes.Table) exact {
	m := exact{}
	for _, r := range table {
		if r.Params() == nil {
			answer := r.Answer()
			m[request{r.Method, r.Path()}] = &answer
		}
	}
	return m
}

func (m exact) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if answer := m[request{r.Method, r.URL.Path}]; answer != nil {
		answer.Write(w, nil) // it has no parameters to ask for
		return
	}
	http.NotFound(w, r)
}
