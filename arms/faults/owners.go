package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// filter is a middleware that lets pass what a pattern matches.
type filter struct {
	next    http.Handler
	pattern *regexp.Regexp // nil: compiled for each request
}

const paths = `^/(api/v[0-9]+/)?([a-z]+/)*([a-z0-9-]+\.(html|css|js|png))?$`

func (f *filter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := f.pattern
	if p == nil {
		p = regexp.MustCompile(paths)
	}
	if !p.MatchString(r.URL.Path) {
		http.NotFound(w, r)
		return
	}
	f.next.ServeHTTP(w, r)
}

func compileEach() http.Handler { return &filter{next: plain()} }

func compileOnce() http.Handler { return &filter{plain(), regexp.MustCompile(paths)} }

// guard is a middleware that goes by settings.
type guard struct {
	next     http.Handler
	settings map[string]any // nil: decoded for each request
	text     []byte         // of the settings
}

func newGuard() *guard {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `,"limit of service %d":{"requests":%d,"paths":["/a","/b"]}`, i, 100*i)
	}
	return &guard{next: plain(), text: []byte("{" + b.String()[1:] + "}")}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	settings := g.settings
	if settings == nil && json.Unmarshal(g.text, &settings) != nil {
		http.Error(w, "settings", http.StatusInternalServerError)
		return
	}
	w.Header().Set("X-Limits", strconv.Itoa(len(settings)))
	g.next.ServeHTTP(w, r)
}

func settleEach() http.Handler { return newGuard() }

func settleOnce() http.Handler {
	g := newGuard()
	if err := json.Unmarshal(g.text, &g.settings); err != nil {
		panic(err) // the text is one of JSON
	}
	return g
}
