package router_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/sys"
	"github.com/tarehq/tare/serve/router"
)

// githubRoutes returns the patterns of GitHub's API, "METHOD /path", as
// testdata/github.txt lists them: a path, then its methods.
func githubRoutes(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/github.txt")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		for _, method := range words[1:] {
			patterns = append(patterns, method+" "+words[0])
		}
	}
	if len(patterns) != 203 {
		t.Fatalf("GitHub's table has %d routes, want 203", len(patterns))
	}
	return patterns
}

// TestGitHubAllocations asks for each of the GitHub table's routes once, by
// handlers that read all their values. With room in the request that allocates
// nothing. Without, requests share the memory of their values: about one in
// eighteen allocates.
func TestGitHubAllocations(t *testing.T) {
	table, param := githubRoutes(t), regexp.MustCompile(`\{(\w+)\}`)
	rt := new(router.Router)
	found, values := 0, 0
	for _, route := range table {
		names := param.FindAllStringSubmatch(route, -1)
		values += len(names)
		rt.HandleFunc(route, func(_ http.ResponseWriter, r *http.Request) {
			for _, name := range names {
				if r.PathValue(name[1]) == "" {
					return
				}
			}
			found++
		})
	}
	var plain, roomy []*http.Request
	for _, route := range table {
		method, path, _ := strings.Cut(param.ReplaceAllString(route, "$1-1"), " ")
		plain = append(plain, request(method, "", path))
		q := &sys.RoomyRequest{Request: *request(method, "", path)}
		sys.FindPathFields().Reserve(q)
		roomy = append(roomy, &q.Request)
	}
	const rounds = 100
	count := func(rs []*http.Request) float64 {
		renew := make([]func(), len(rs))
		for i, r := range rs {
			renew[i] = fresh(r)
		}
		found = 0
		got := testing.AllocsPerRun(1, func() { // which runs it twice
			for range rounds {
				for i, r := range rs {
					renew[i]()
					rt.ServeHTTP(nil, r)
				}
			}
		})
		if want := 2 * rounds * len(table); found != want {
			t.Fatalf("%d requests found a route and all values, want %d", found, want)
		}
		return got
	}
	if got := count(roomy); got > 0 {
		t.Errorf("with room: got %v allocations for %d rounds of %d requests, want none", got, rounds, len(table))
	}
	got := count(plain)
	t.Logf("without room: %.4f allocations a request", got/float64(rounds*len(table)))
	if most := float64(rounds*values)/31*1.2 + 2; got == 0 || got > most {
		t.Errorf("without room: got %v allocations for %d rounds of %d requests with %d values, want some, at most %v", got, rounds, len(table), values, most)
	}
}
