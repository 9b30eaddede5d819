package load_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/load"
)

// feeder writes content to a file called name and opens it.
func feeder(t testing.TB, name, content string) *load.Feeder {
	t.Helper()
	f, err := load.OpenFeeder(writeFile(t, name, content))
	if err != nil {
		t.Fatalf("OpenFeeder(%q): %v", content, err)
	}
	return f
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func one(t load.Target) load.Options { return load.Options{Targets: []load.Target{t}} }

func TestEncoding(t *testing.T) {
	people := feeder(t, "people.csv", "name,id\nAda Byron/ä,7\n\"Bob, Jr\",8\n")
	tests := []struct {
		name string
		give load.Options
		want []string
	}{
		{"plain", one(load.Target{URL: "http://localhost:8080"}),
			[]string{"GET / HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: tare\r\n\r\n"}},
		{"query without path, fragment", one(load.Target{URL: "http://h?a=b#frag"}),
			[]string{"GET /?a=b HTTP/1.1\r\nHost: h\r\nUser-Agent: tare\r\n\r\n"}},
		{"escapes kept, the rest escaped", one(load.Target{URL: "http://h/a%2Fb c/{x}?q=ä\"&r=%20"}),
			[]string{"GET /a%2Fb%20c/%7Bx%7D?q=%C3%A4%22&r=%20 HTTP/1.1\r\nHost: h\r\nUser-Agent: tare\r\n\r\n"}},
		{"international host", one(load.Target{URL: "http://bücher.example/"}),
			[]string{"GET / HTTP/1.1\r\nHost: xn--bcher-kva.example\r\nUser-Agent: tare\r\n\r\n"}},
		{"zone", one(load.Target{URL: "http://[fe80::1%25eth0]:8080/"}),
			[]string{"GET / HTTP/1.1\r\nHost: [fe80::1]:8080\r\nUser-Agent: tare\r\n\r\n"}},
		{"through a proxy", load.Options{Proxy: "http://ada:x@proxy", Targets: []load.Target{{URL: "http://bücher.example:81/a b", Header: []load.Field{{Name: "Host", Value: "h"}}}}},
			[]string{"GET http://xn--bcher-kva.example:81/a%20b HTTP/1.1\r\nHost: h\r\nProxy-Authorization: Basic YWRhOng=\r\nUser-Agent: tare\r\n\r\n"}},
		{"through a proxy's tunnel", load.Options{Proxy: "http://ada:x@proxy", Targets: []load.Target{{URL: "https://h/a"}}},
			[]string{"GET /a HTTP/1.1\r\nHost: h\r\nUser-Agent: tare\r\n\r\n"}},
		{"overrides and body", one(load.Target{Method: "PUT", URL: "http://h:1/x", Body: []byte("hello"),
			Header: []load.Field{{Name: "user-agent", Value: "me"}, {Name: "X", Value: "1"}, {Name: "Host", Value: "other"}}}),
			[]string{"PUT /x HTTP/1.1\r\nHost: other\r\nuser-agent: me\r\nX: 1\r\nContent-Length: 5\r\n\r\nhello"}},
		{"POST without body", one(load.Target{Method: "POST", URL: "http://h/"}),
			[]string{"POST / HTTP/1.1\r\nHost: h\r\nUser-Agent: tare\r\nContent-Length: 0\r\n\r\n"}},
		{"fields without a feeder are text", one(load.Target{Method: "POST", URL: "http://h/", Body: []byte("{{.name}}")}),
			[]string{"POST / HTTP/1.1\r\nHost: h\r\nUser-Agent: tare\r\nContent-Length: 9\r\n\r\n{{.name}}"}},
		{"fields", load.Options{Feeder: people, Targets: []load.Target{{Method: "POST",
			URL: "http://h/u/{{.name}}?id={{ .id }}&k", Header: []load.Field{{Name: "X-Id", Value: "<{{.id}}>"}}, Body: []byte(`{"n":"{{.name}}"}`)}}},
			[]string{
				"POST /u/Ada%20Byron%2F%C3%A4?id=7&k HTTP/1.1\r\nHost: h\r\nX-Id: <7>\r\nUser-Agent: tare\r\nContent-Length: 20\r\n\r\n{\"n\":\"Ada Byron/ä\"}",
				"POST /u/Bob%2C%20Jr?id=8&k HTTP/1.1\r\nHost: h\r\nX-Id: <8>\r\nUser-Agent: tare\r\nContent-Length: 15\r\n\r\n{\"n\":\"Bob, Jr\"}",
				"POST /u/Ada%20Byron%2F%C3%A4?id=7&k HTTP/1.1\r\nHost: h\r\nX-Id: <7>\r\nUser-Agent: tare\r\nContent-Length: 20\r\n\r\n{\"n\":\"Ada Byron/ä\"}",
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := load.Encoded(tt.give, 0, len(tt.want))
			if err != nil {
				t.Fatal(err)
			}
			for i := range tt.want {
				if got[i] != tt.want[i] {
					t.Errorf("request %d:\ngot  %q\nwant %q", i, got[i], tt.want[i])
				}
				if _, err := http.ReadRequest(bufio.NewReader(strings.NewReader(got[i]))); err != nil {
					t.Errorf("request %d, %q: net/http reads it as: %v", i, got[i], err)
				}
			}
		})
	}
}

func TestEncodingClosing(t *testing.T) {
	got, err := load.EncodedClosing(one(load.Target{URL: "http://h/"}))
	want := "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: tare\r\nConnection: close\r\n\r\n"
	if got != want || err != nil {
		t.Errorf("closing request:\ngot  %q, %v\nwant %q", got, err, want)
	}
}

// A target without a scheme is one of http, and one that begins with a port is of localhost.
func TestAbsoluteURL(t *testing.T) {
	for given, want := range map[string]string{
		"localhost:8080/x": "http://localhost:8080/x", ":8080/x": "http://localhost:8080/x", "//h/x": "http://h/x",
		"127.0.0.1:80": "http://127.0.0.1:80", "h:80/?next=http://g/": "http://h:80/?next=http://g/", "https://h/": "https://h/",
	} {
		if got := load.AbsoluteURL(given); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
		if strings.HasPrefix(want, "https") {
			continue
		}
		got, err := load.EncodedClosing(load.Options{Targets: []load.Target{{URL: given}}})
		wanted, _ := load.EncodedClosing(load.Options{Targets: []load.Target{{URL: want}}})
		if err != nil || string(got) != string(wanted) {
			t.Errorf("%s is sent as %q (%v), want %q", given, got, err, wanted)
		}
	}
}

func TestShown(t *testing.T) {
	for raw, want := range map[string]string{
		"http://h/@ada?mail=ada@h": "http://h/@ada?mail=ada@h",
		"http://[::1]/@ada":        "http://[::1]/@ada",
		"http://joe@h/":            "http://…@h/",
		"https://joe:secret@h/@a":  "https://…@h/@a",
		"https://joe:sec/ret@h/":   "https://…@h/",
		"https://joe:sec@ret@h/@a": "https://…@h/@a",
		"/@ada":                    "/@ada",
	} {
		if got := load.Shown(raw); got != want {
			t.Errorf("%s is shown as %s, want %s", raw, got, want)
		}
	}
}

func TestTargetErrors(t *testing.T) {
	csv := feeder(t, "f.csv", "name,id\na,1\n")
	evil := feeder(t, "evil.csv", "name,id\na,1\n\"b\r\nX: y\",2\n")
	get := func(url string) load.Options { return one(load.Target{URL: url}) }
	fed := func(f *load.Feeder, tg load.Target) load.Options {
		return load.Options{Feeder: f, Targets: []load.Target{tg}}
	}
	tests := []struct {
		give load.Options
		want string // in the error
	}{
		{load.Options{}, "no target"},
		{get(""), "the URL is empty"},
		{get("/x"), "no host"},
		{get("ftp://h/"), `scheme "ftp" is not supported: use http or https`},
		{get("wss://h/"), "WebSockets"},
		{get("http:///x"), "the URL has no host"},
		{get("http://h:0/"), `port "0" is outside 1 to 65535`},
		{get("http://h:99999/"), `port "99999" is outside 1 to 65535`},
		{get("http://h:http/"), `invalid port`},
		{get("http://[::1/"), "malformed"},
		{get("http://h/%zz"), `invalid URL escape "%zz"`},
		{get("http://joe:secret@h/"), "Authorization"},
		{get("http://joe:se cret@h/"), "Authorization"},
		{get("http://joe:se@cret@h/"), "Authorization"},
		{get("http://joe:secret/x@h/"), "credentials are not sent"},
		{one(load.Target{Method: "GE T", URL: "http://h/"}), `method "GE T"`},
		{one(load.Target{Method: "CONNECT", URL: "http://h/"}), "tunnel"},
		{one(load.Target{URL: "http://h/", Weight: -1}), "weight -1"},
		{one(load.Target{URL: "http://h/", Header: []load.Field{{Name: "a b"}}}), `header "a b"`},
		{one(load.Target{URL: "http://h/", Header: []load.Field{{Name: "A", Value: "x\r\nB: y"}}}), "control character"},
		{one(load.Target{URL: "http://h/", Header: []load.Field{{Name: "Content-length", Value: "3"}}}), "follows from the body"},
		{one(load.Target{URL: "http://h/", Header: []load.Field{{Name: "Host", Value: "a"}, {Name: "host", Value: "b"}}}), "given twice"},
		{load.Options{Targets: []load.Target{{URL: "http://a/"}, {URL: "https://b/"}}}, `target 2, "https://b/": scheme "https" differs`},
		{load.Options{Targets: []load.Target{{URL: "http://a/"}, {URL: "ftp://b/", Source: "urls.txt:7"}}}, `urls.txt:7: target "ftp://b/": scheme "ftp"`},
		{load.Options{Protocol: load.HTTP2, Targets: []load.Target{{URL: "http://a/", Header: []load.Field{{Name: "Connection", Value: "close"}}}}}, "HTTP/2 and HTTP/3 do not allow"},
		{load.Options{NewConnections: 1.5, Targets: []load.Target{{URL: "http://a/"}}}, "outside 0 to 1"},
		{fed(csv, load.Target{URL: "http://h/{{.nam}}"}), "{{.nam}} is not a column of " /* its path */},
		{fed(csv, load.Target{URL: "http://h/{{.nam}}"}), "it has name, id"},
		{get("http://h/users/{{.id}}"), "no feeder file to fill it"},
		{fed(csv, load.Target{URL: "http://{{.name}}/"}), "not in the host"},
		{fed(csv, load.Target{URL: "http://h/", Body: []byte("{{name}}")}), `body: "{{name}}" does not open a field: want {{.name}} with one of name, id`},
		{fed(csv, load.Target{URL: "http://h/{{.name"}), "does not open a field"},
		{fed(evil, load.Target{URL: "http://h/{{.name}}"}), "evil.csv:3: column \"name\" holds a control character"},
		{fed(evil, load.Target{URL: "http://h/", Header: []load.Field{{Name: "A", Value: "{{.name}}"}}}), "evil.csv:3"},
	}
	for _, tt := range tests {
		_, _, err := load.Encoded(tt.give, 0, 1)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("targets %+v:\ngot error %v\nwant one with %q", tt.give.Targets, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "cret") {
			t.Errorf("targets %+v: error shows the password: %v", tt.give.Targets, err)
		}
	}
	if _, _, err := load.Encoded(fed(evil, load.Target{URL: "http://h/{{.id}}", Body: []byte("{{.name}}")}), 0, 2); err != nil {
		t.Errorf("a line break in a body's field: got error %v, want none", err)
	}
}

func TestWeights(t *testing.T) {
	o := load.Options{Targets: []load.Target{{URL: "http://a/"}, {URL: "http://b/", Weight: 6}, {URL: "http://c/", Weight: 3}}}
	const n = 100_000
	_, got, err := load.Encoded(o, 3, n)
	if err != nil {
		t.Fatal(err)
	}
	count := make([]int, 3)
	for _, g := range got {
		count[g]++
	}
	for i, want := range []float64{0.1, 0.6, 0.3} {
		if share := float64(count[i]) / n; share < want-0.01 || share > want+0.01 {
			t.Errorf("target %d of weights 1, 6, 3: got a share of %.3f, want %.1f", i, share, want)
		}
	}
	_, again, _ := load.Encoded(o, 3, n)
	_, other, _ := load.Encoded(o, 4, n)
	same := 0
	for i := range got {
		if got[i] != again[i] {
			t.Fatalf("draw %d of the same worker: got %d then %d", i, got[i], again[i])
		}
		if got[i] == other[i] {
			same++
		}
	}
	if same == n {
		t.Error("two workers drew the same sequence")
	}
}

func TestNextAllocates(t *testing.T) {
	f := feeder(t, "f.csv", "name\nab\nc d\n")
	for name, o := range map[string]load.Options{
		"fixed": {Targets: []load.Target{{URL: "http://h/"}, {URL: "http://h/b"}}},
		"fed":   {Feeder: f, Targets: []load.Target{{Method: "POST", URL: "http://h/{{.name}}", Body: []byte("{{.name}}")}}},
	} {
		if got, err := load.NextAllocs(o); got != 0 || err != nil {
			t.Errorf("%s: got %v allocations a request, %v; want 0", name, got, err)
		}
	}
}

// A request without fields stays as it is beside others that are filled anew.
func TestFixedBesideFilled(t *testing.T) {
	f := feeder(t, "people.csv", "name\nAda Byron Lovelace\nBob\n")
	const fixed = "GET /fixed HTTP/1.1\r\nHost: h\r\nUser-Agent: tare\r\n\r\n"
	reqs, targets, err := load.Encoded(load.Options{Feeder: f, Targets: []load.Target{
		{URL: "http://h/fixed"}, {Method: "PUT", URL: "http://h/{{.name}}"},
	}}, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	var seen [2]int
	for i, target := range targets {
		seen[target]++
		if target == 0 && reqs[i] != fixed {
			t.Fatalf("request %d: got %q, want %q", i, reqs[i], fixed)
		}
		if target == 1 && !strings.HasPrefix(reqs[i], "PUT /") {
			t.Fatalf("request %d: got %q, want a PUT", i, reqs[i])
		}
	}
	if seen[0] == 0 || seen[1] == 0 {
		t.Errorf("drawn %v times, want both targets", seen)
	}
}

func TestOpenFeeder(t *testing.T) {
	tests := []struct {
		name, content string
		want          string // columns and length, or part of the error
	}{
		{"a.csv", "\ufeffx,y\n1,2\n3,4\n", "x y 2"},
		{"a.csv", "\ufeff\"x\",\"y\"\n1,2\n", "x y 1"},
		{"a.jsonl", "\ufeff{\"x\":1,\"y\":2}\n", "x y 1"},
		{"a.jsonl", "{\"b\":\"x\",\"a\":1.50}\n\n{\"a\":true,\"b\":\"\"}\n", "b a 2"},
		{"a.txt", "x", "is not .csv, .jsonl or .ndjson"},
		{"a.csv", "", "no records"},
		{"a.csv", "x,y\n", "no records"},
		{"a.csv", "x,x\n1,2\n", `a.csv:1: column "x" appears twice`},
		{"a.csv", "x,\n1,2\n", `a.csv:1: "" is no name`},
		{"a.csv", "x,y\n1,2\n3\n", "a.csv:3: wrong number of fields"},
		{"a.csv", "x\n\"1\n", "a.csv:2: extraneous or missing \" in quoted-field"},
		{"a.jsonl", "{\"a\":1}\n{\"b\":1}\n", `a.jsonl:2: "b" is not among`},
		{"a.jsonl", "{\"a\":1,\"b\":1}\n{\"b\":1}\n", `a.jsonl:2: key "a" is missing`},
		{"a.jsonl", "{\"a\":1}\n{\"a\":1,\"a\":2}\n", `a.jsonl:2: key "a" appears twice`},
		{"a.jsonl", "{\"a\":{}}\n", `a.jsonl:1: key "a": want a string`},
		{"a.jsonl", "{\"a\":null}\n", `a.jsonl:1: key "a": want a string`},
		{"a.jsonl", "[1]\n", "a.jsonl:1: not a JSON object"},
		{"a.jsonl", "{}\n", "a.jsonl:1: no columns"},
		{"a.jsonl", "{\"a\":1} {}\n", "a.jsonl:1: more than one value"},
		{"a.jsonl", "{\"a\":\n", "a.jsonl:1: the line ends within the object"},
	}
	for _, tt := range tests {
		f, err := load.OpenFeeder(writeFile(t, tt.name, tt.content))
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(load.Columns(f), " ") + " " + string(rune('0'+f.Len()))
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s with %q:\ngot  %q\nwant %q", tt.name, tt.content, got, tt.want)
		}
	}
	if _, err := load.OpenFeeder("/no/such/file.csv"); err == nil || !strings.HasPrefix(err.Error(), "opening feeder: ") {
		t.Errorf("missing file: got error %v", err)
	}
}

// FuzzTarget sends whatever the script makes of a URL, a header value and a
// body through net/http's reader, which must see one request with that body.
func FuzzTarget(f *testing.F) {
	f.Add("http://h/a?b=c", "v", "body")
	f.Add("https://[::1]:8/%41 {{.x}}", "", "")
	f.Fuzz(func(t *testing.T, url, value, body string) {
		got, _, err := load.Encoded(one(load.Target{Method: "POST", URL: url,
			Header: []load.Field{{Name: "X-V", Value: value}}, Body: []byte(body)}), 0, 1)
		if err != nil {
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(got[0])))
		if err != nil {
			t.Fatalf("URL %q, header %q: net/http reads %q as: %v", url, value, got[0], err)
		}
		b, err := io.ReadAll(req.Body)
		if err != nil || string(b) != body || len(req.Header) > 3 {
			t.Fatalf("URL %q, header %q, body %q: net/http reads body %q, %v, header %v", url, value, body, b, err, req.Header)
		}
	})
}
