package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/proxy/gateway/region/regiontest"
)

// regional is a file whose routes go by region, with three services that say their names.
func regional(t *testing.T, at, database string) string {
	t.Helper()
	var services []any
	for _, name := range []string{"germany", "alps", "world"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
		t.Cleanup(s.Close)
		services = append(services, s.Listener.Addr())
	}
	return fmt.Sprintf(`{"grace": "1s", "listen": [{"address": %q}], "trusted": ["127.0.0.0/8"], "regions": {"database": %q},
		"upstreams": {"germany": {"servers": [{"address": "%v"}]}, "alps": {"servers": [{"address": "%v"}]}, "world": {"servers": [{"address": "%v"}]}},
		"routes": [{"path": "/", "region": ["DE"], "upstream": "germany"}, {"path": "/", "region": ["AT", "CH"], "upstream": "alps"}, {"path": "/", "upstream": "world"}]}`,
		append([]any{at, database}, services...)...)
}

// TestRegions has requests go by the region of their client, whom a trusted proxy names; by
// another database once the file names it; and a mistake change nothing.
func TestRegions(t *testing.T) {
	dir, at := t.TempDir(), freeAddress(t)
	database := func(name string, codes map[string]string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, regiontest.Database(codes), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := database("first", map[string]string{"203.0.113.0/24": "DE", "198.51.100.0/24": "AT", "2001:db8::/32": "CH"})
	second := database("second", map[string]string{"203.0.113.0/24": "AT"})
	g := run(t)
	check := func(want map[string]string) {
		t.Helper()
		for client, service := range want {
			r, err := http.NewRequest("GET", "http://"+at, nil)
			if err != nil {
				t.Fatal(err)
			}
			if client != "" {
				r.Header.Set("X-Forwarded-For", client)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if string(body) != service {
				t.Errorf("%q got %s, want %s", client, body, service)
			}
		}
	}
	text := regional(t, at, first)
	if got := g.give(t, text); len(got.Problems) > 0 {
		t.Fatalf("got %+v", got)
	}
	want := map[string]string{"203.0.113.7": "germany", "198.51.100.7": "alps", "2001:db8::1": "alps", "192.0.2.1": "world", "": "world"}
	check(want)
	for wrong, problem := range map[string]string{
		strings.Replace(text, first, filepath.Join(dir, "gone"), 1):                            "regions.database: ",
		strings.Replace(text, `"database"`, `"field": "country.code", "database"`, 1):          "regions.database: reading " + first,
		strings.Replace(text, `"regions": {"database": `+fmt.Sprintf("%q", first)+`},`, "", 1): "routes[0]: region needs the key regions",
		strings.Replace(text, `["DE"]`, `[]`, 1):                                               "routes[0].region: want at least one region",
	} {
		if got := g.give(t, wrong); len(got.Problems) == 0 || !strings.HasPrefix(got.Problems[0].Error(), problem) {
			t.Errorf("%s:\ngot %+v, want %q", wrong, got, problem)
		}
	}
	check(want)
	if got := g.give(t, strings.Replace(text, first, second, 1)); len(got.Problems) > 0 {
		t.Fatalf("got %+v", got)
	}
	check(map[string]string{"203.0.113.7": "alps", "198.51.100.7": "world"})
	http.DefaultClient.CloseIdleConnections()
	g.end(t)
}

// TestLocate prints the regions of addresses.
func TestLocate(t *testing.T) {
	dir := t.TempDir()
	database, path := filepath.Join(dir, "db"), filepath.Join(dir, "proxy.json")
	text := regional(t, ":80", database)
	for file, data := range map[string][]byte{database: regiontest.Database(map[string]string{"203.0.113.0/24": "DE"}), path: []byte(text)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(addresses ...string) reply {
		t.Helper()
		var out bytes.Buffer
		var got reply
		if err := locate(path, addresses, &out); err != nil || json.Unmarshal(out.Bytes(), &got) != nil {
			t.Fatalf("got %v, %s", err, &out)
		}
		return got
	}
	if got := tell("203.0.113.7", "192.0.2.1"); len(got.Problems) > 0 || len(got.Regions) != 2 || got.Regions[0].Region != "DE" || got.Regions[1].Region != "" {
		t.Errorf("got %+v", got)
	}
	if got := tell("203.0.113"); len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Text, "203.0.113") {
		t.Errorf("got %+v", got)
	}
	if err := os.WriteFile(path, []byte(file(`[{"address": ":80"}]`, "127.0.0.1:1")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tell("203.0.113.7"); len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Text, "lacks the key regions") {
		t.Errorf("got %+v", got)
	}
}
