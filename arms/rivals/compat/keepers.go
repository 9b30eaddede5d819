package compat

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// keepers are probes of handlers that keep of a request what net/http lets them
// keep.
func keepers() []Probe {
	return []Probe{
		{"request kept", "net/http", "unchanged after the handler has returned", probeKept},
		{"Request.Clone kept", "net/http", "unchanged after the handler has returned", probeClone},
		{"strings kept", "net/http", "path, query and header values unchanged after the handler has returned", probeStrings},
	}
}

// seal writes down what a request says. Maps are printed in the order of their
// keys, and what is printed shares no memory with the request.
func seal(r *http.Request) string {
	return fmt.Sprint(r.Method, r.URL, r.URL.Query(), r.Proto, r.Host, r.RequestURI, r.RemoteAddr, r.Header, r.ContentLength)
}

// keeps has requests kept by a handler and compares them with what they said.
// Each request comes on the same connection and differs from the others.
func keeps(t *Trial, keep func(*http.Request) *http.Request) {
	var mu sync.Mutex
	var kept []*http.Request
	var seals []string
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		kept, seals = append(kept, keep(r)), append(seals, seal(r))
		io.WriteString(w, "kept")
	}))
	for i := range 8 {
		word := strings.Repeat(string(rune('a'+i)), 8)
		t.wants(t.get("/"+word+"?q="+word, "X-Word: "+word, "Cookie: word="+word), http.StatusOK, "kept")
	}
	mu.Lock()
	defer mu.Unlock()
	t.need(len(kept) == 8, "%d requests reach the handler instead of 8", len(kept))
	for i, r := range kept {
		t.must(seal(r) == seals[i], "what was kept changes with later requests")
	}
}

func probeKept(t *Trial) { keeps(t, func(r *http.Request) *http.Request { return r }) }

func probeClone(t *Trial) {
	keeps(t, func(r *http.Request) *http.Request { return r.Clone(r.Context()) })
}

// probeStrings has them used as a map's keys, as caches and counters do.
func probeStrings(t *Trial) {
	var mu sync.Mutex
	counts := map[string]int{}
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for _, key := range []string{r.URL.Path, r.URL.RawQuery, r.Header.Get("X-Word")} {
			counts[key]++
		}
		io.WriteString(w, "counted")
	}))
	for i := range 8 {
		word := strings.Repeat(string(rune('a'+i%4)), 8)
		t.wants(t.get("/"+word+"?q="+word, "X-Word: "+word), http.StatusOK, "counted")
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range 4 {
		word := strings.Repeat(string(rune('a'+i)), 8)
		for _, key := range []string{"/" + word, "q=" + word, word} {
			t.must(counts[key] == 2, "a key of a map changes with later requests")
		}
	}
}
