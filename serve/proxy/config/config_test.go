package config_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy/config"
	"github.com/tarehq/tare/serve/servetest"
)

func Example() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "seven of ", r.URL.Path) }))
	defer upstream.Close()
	f, err := config.Parse([]byte(`{
		"listen": [{"address": "127.0.0.1:8080"}],
		"upstreams": {"stock": {"servers": [{"address": "` + upstream.Listener.Addr().String() + `"}]}},
		"routes": [{"path": "/api/", "strip": "/api", "upstream": "stock"}]
	}`))
	if err != nil {
		panic(err)
	}
	var site config.Site
	defer site.Close()
	if err := site.Take(f); err != nil {
		panic(err)
	}
	s := servetest.NewServer(&site)
	defer s.Close()
	res, err := http.Get(s.URL + "/api/pens")
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	fmt.Println(string(text))
	// Output: seven of /pens
}

const rest = `"listen": [{"address": ":8080"}], "upstreams": {"a": {"servers": [{"address": "a:1"}]}}, `

// TestProblems is the table of what is wrong in files.
func TestProblems(t *testing.T) {
	route := `"routes": [{"path": "/", "upstream": "a"}]`
	for _, c := range []struct{ file, want string }{
		{`{`, "not JSON: unexpected EOF"},
		{`{} {}`, "not JSON: something follows the first value"},
		{`[]`, "got a list; want a mapping with the keys listen, name, trusted, forwarded, grace, linger, access_log, admin, regions, connect, middlewares, guards, upstreams, routes"},
		{`{}`, "lacks the key listen\nlacks the key routes"},
		{`{` + rest + route + `, "colour": 1}`, `colour: there is no key "colour"; allowed: listen, name, trusted, forwarded, grace, linger, access_log, admin, regions, connect, middlewares, guards, upstreams, routes`},
		{`{"listen": [], ` + route + `, "upstreams": {"a": {"servers": []}}}`, "listen: want at least one address\nupstreams.a.servers: want at least one server"},
		{`{"listen": [{"address": 80}], "routes": []}`, "listen[0].address: got the number 80; want host:port, such as 127.0.0.1:8080 or :8080"},
		{`{"listen": [{"address": ":80", "key": "k"}], "routes": []}`, "listen[0]: a certificate and its key go together"},
		{`{` + rest + `"name": "a b", "forwarded": 1, "grace": "2", "trusted": ["10.0.0.0/33"], "routes": []}`,
			"forwarded: got the number 1; want true or false\nname: got \"a b\"; want a word such as edge-1\n" +
				"grace: got \"2\"; want a duration from 0s to 1h0m0s, such as 300ms or 2s\n" +
				"trusted[0]: got \"10.0.0.0/33\"; want an address or a network, such as 10.0.0.0/8"},
		{`{` + rest + `"routes": [{"path": "a", "upstream": "b"}]}`,
			"routes[0].path: got \"a\"; want a pattern that begins with /, such as /api/ or /users/{id}\n" +
				"routes[0].upstream: got \"b\"; want the name of one of upstreams"},
		{`{` + rest + `"routes": [{"path": "/"}]}`, "routes[0]: want one of upstream, split and redirect"},
		{`{` + rest + `"routes": [{"path": "/", "upstream": "a", "redirect": {"to": "/x"}}]}`, "routes[0]: want one of upstream, split and redirect"},
		{`{` + rest + `"routes": [{"path": "/", "redirect": {"to": "/", "keep": true}}]}`, "routes[0].redirect.to: with keep: true the request's path and query follow, so want no / at its end, no ? and no #"},
		{`{` + rest + `"routes": [{"path": "/{x", "upstream": "a"}]}`, "routes[0].path: parsing"},
		{`{` + rest + `"routes": [{"path": "/a", "upstream": "a"}, {"path": "/a", "upstream": "a", "header": {"X": "1"}}]}`, "routes[1].path: an earlier route takes all requests for /a"},
		{`{` + rest + `"routes": [{"path": "/{x}/b", "upstream": "a"}, {"path": "/b/{y}", "upstream": "a"}]}`, `routes[1].path: pattern "/b/{y}" (routes[1]) conflicts with "/{x}/b" (routes[0])`},
		{`{` + rest + `"routes": [{"path": "/", "split": [{"upstream": "a", "weight": 0}]}]}`, "routes[0].split: want weights above 0"},
		{`{` + rest + `"routes": [{"path": "/", "method": ["get"], "upstream": "a"}]}`, `routes[0].method[0]: got "get"; want a method in capitals, such as POST`},
		{`{"listen": [{"address": ":80"}], ` + route + `, "upstreams": {"a": {"servers": [{"address": "a:1"}, {"address": "a:1", "weight": 101}]}}}`,
			"upstreams.a.servers[1].weight: got the number 101; want a whole number from 0 to 100\nupstreams.a.servers[1].address: a:1 is there twice"},
		{`{"listen": [{"address": ":80"}], ` + route + `, "upstreams": {"a": {"servers": [{"address": "a:1"}], "balance": "random", "panic": "half", "key": {"header": "X"}, "check": {}}}}`,
			"upstreams.a.balance: got \"random\"; want one of least_requests, round_robin, peak_ewma, consistent_hash\n" +
				"upstreams.a.panic: got \"half\"; want a percentage from 0% to 100%, such as 50%\n" +
				"upstreams.a.key: is for balance: consistent_hash, and has a header or a cookie; without it the client's address is the key\n" +
				"upstreams.a.check: want path, or grpc: true"},
		{`{"listen": [{"address": ":80", "h2c": true, "certificate": "c", "key": "k"}], "routes": []}`, "listen[0].h2c: is for HTTP/2 without TLS; with a certificate there is HTTP/2 anyway"},
		{`{"listen": [{"address": ":80"}], ` + route + `, "upstreams": {"a": {"dns": {"name": "x.internal"}}, "b": {}, "c": {"dns": {"name": "x"}, "kubernetes": {"service": "X"}},
			"d": {"servers": [{"address": "a:1"}], "balance": "consistent_hash", "slow_start": "10s"}}}`,
			"upstreams.a.dns: lacks the key port; only SRV records, whose names begin with _, say it\n" +
				"upstreams.b: want one of servers, dns and kubernetes\n" +
				"upstreams.c: want one of servers, dns and kubernetes\n" +
				"upstreams.c.dns: lacks the key port; only SRV records, whose names begin with _, say it\n" +
				"upstreams.c.kubernetes.service: got \"X\"; want a service's name\n" +
				"upstreams.d.slow_start: does not go with balance: consistent_hash, whose keys stay with their server"},
		{`{` + rest + route + `, "middlewares": [{"gzip": {}}, {"secure": {}, "limit": {}}, {"timeout": {}}, {"jwt": {"jwks": "http://issuer.example/keys"}}]}`,
			"middlewares[0].gzip: there is no key \"gzip\"; allowed: requestid, secure, cors, ipfilter, limit, ratelimit, timeout, jwt, basicauth, apikey\n" +
				"middlewares[0]: want the name of one middleware with its settings\n" +
				"middlewares[1]: want the name of one middleware with its settings\n" +
				"middlewares[2].timeout: lacks the key after\n" +
				"middlewares[3].jwt: jwt: URL is \"http://issuer.example/keys\"; it must begin with https://"},
		{`{` + rest + route + `, "middlewares": [{"limit": {"body": "1m"}}, {"limit": {"body": "2GiB"}}, {"limit": {"body": 0}}]}`,
			"middlewares[0].limit.body: got \"1m\"; want a number of bytes up to 1073741824, or a size such as 8MiB\n" +
				"middlewares[1].limit.body: got \"2GiB\"; want a number of bytes up to 1073741824, or a size such as 8MiB\n" +
				"middlewares[2].limit.body: got the number 0; want a whole number from 1 to 1073741824"},
		{`{` + rest + route + `, "middlewares": [{"jwt": {"jwks": "https://issuer.example/keys"}}, {"requestid": {}}]}`,
			"middlewares: requestid (layer 2) must not stand after jwt (layer 1): requests that it refuses would have no identifier"},
		{`{` + rest + route + `, "middlewares": [{"ratelimit": {"requests": 5}}], "guards": {"api": [{"cors": {"origins": ["https://a.example"]}}]}}`,
			"guards.api: cors (layer 2) must not stand after ratelimit (layer 1): scripts could not read its refusals"},
		{`{` + rest + route + `, "middlewares": [{"cors": {"origins": ["null"]}}, {"ipfilter": {}}, {"jwt": {"algorithm": "HS256"}}, {"ipfilter": {"deny_file": "no-such-file"}}]}`,
			"middlewares[0].cors: cors: Origins has \"null\": any page can have this origin, such as one in a sandbox\n" +
				"middlewares[1].ipfilter: want one of allow, deny, allow_file and deny_file\n" +
				"middlewares[2].jwt: want jwks, or algorithm with one of secret_file and public_key_file\n" +
				"middlewares[3].ipfilter: open no-such-file: "},
		{`{` + rest + `"routes": [{"host": "a.example:80", "path": "/a/", "strip": "/b", "upstream": "a"}]}`,
			"routes[0].host: got \"a.example:80\"; want one host, without * or a port\nroutes[0].strip: no path of the route begins with /b"},
		{`{` + rest + `"routes": [{"host": "*.a.example", "path": "/", "upstream": "a"}, {"host": "bücher.example", "path": "/", "upstream": "a"}]}`,
			"routes[0].host: got \"*.a.example\"; want one host, without * or a port\nroutes[1].host: got \"bücher.example\"; want one host, without * or a port"},
		{`{` + rest + `"routes": [{"path": "/", "upstream": "a", "guard": "api", "shadow": {"upstream": "b", "share": "0%"}}]}`,
			"routes[0].guard: got \"api\"; want the name of one of guards\n" +
				"routes[0].shadow.upstream: got \"b\"; want the name of one of upstreams\n" +
				"routes[0].shadow.share: want more than 0%, or no shadow"},
		{`{"listen": [{"address": ":80", "redirect": "http"}, {"address": ":443", "certificate": "c", "key": "k", "redirect": "https"}], "routes": []}`,
			"listen[0].redirect: got \"http\"; want https, or https with a port such as https:8443\n" +
				"listen[1].redirect: is for an address without a certificate"},
		{`{"listen": [{"address": ":80"}], "upstreams": {"a": {"servers": [{"address": "a:1"}], "eject": {"least": 5}}}, "routes": [{"path": "/", "upstream": "a", "prepend": "/a b"}]}`,
			"upstreams.a.eject: least and window go with share\n" +
				"routes[0].prepend: got \"/a b\"; want a path that begins with / and does not end with one, without what is to be escaped"},
		{`{"listen": [{"address": ":80"}], ` + route + `, "upstreams": {"a": {"servers": [{"address": "a:1"}], "connections": {"most": 4, "warm": 8, "queue": 0}},
			"b": {"servers": [{"address": "a:1"}], "connections": {"queue": 5}}, "c": {"servers": [{"address": "a:1"}], "scheme": "h2c", "connections": {"warm": 1}},
			"d": {"servers": [{"address": "a:1"}], "connections": {"most": 0, "warm": 1000, "wait": "0s"}}}}`,
			"upstreams.a.connections.warm: 8 are more than most, which is 4\n" +
				"upstreams.b.connections: queue and wait go with most\n" +
				"upstreams.c.connections.warm: does not go with scheme: h2c, whose requests share connections\n" +
				"upstreams.d.connections.most: got the number 0; want a whole number from 1 to 1000000\n" +
				"upstreams.d.connections.wait: got \"0s\"; want a duration from 1ms to 1h0m0s, such as 300ms or 2s\n" +
				"upstreams.d.connections.warm: got the number 1000; want a whole number from 1 to 512"},
		{`{"listen": [{"address": ":80"}], ` + route + `, "upstreams": {"a": {"servers": [{"address": "a:1"}], "tls": {"name": "a.example"}},
			"b": {"scheme": "https", "servers": [{"address": "a:1"}], "tls": {"certificate": "c"}}, "c": {"scheme": "https", "servers": [{"address": "a:1"}], "tls": {"ca": "no-such-file"}}}}`,
			"upstreams.a.tls: is for scheme: https\n" +
				"upstreams.b.tls: a certificate and its key go together\n" +
				"upstreams.c.tls: open no-such-file: "},
		{`{"listen": [{"address": ":80"}], "routes": [], "upstreams": {"a b": {}}}`, `upstreams.a b: "a b" is not a name: use letters, digits, - and _`},
	} {
		_, err := config.Parse([]byte(c.file))
		var problems config.Problems
		if !errors.As(err, &problems) || !strings.HasPrefix(err.Error(), c.want) || strings.Count(err.Error(), "\n") != strings.Count(c.want, "\n") {
			t.Errorf("%s:\ngot  %v\nwant %s", c.file, err, c.want)
		}
	}
}

// service answers with its name and what it was asked for.
func service(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.URL.RequestURI()) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func parse(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRoutes is the table of which upstream gets a request.
func TestRoutes(t *testing.T) {
	var site config.Site
	defer site.Close()
	if w := httptest.NewRecorder(); true {
		site.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("before there is a file: %d", w.Code)
		}
	}
	err := site.Take(parse(t, `{"listen": [{"address": ":8080"}],
		"upstreams": {"a": {"servers": [{"address": "`+service(t, "a")+`"}]}, "b": {"servers": [{"address": "`+service(t, "b")+`"}]}},
		"routes": [
			{"path": "/", "upstream": "a"},
			{"path": "/beta", "header": {"X-Beta": "1"}, "upstream": "b"},
			{"path": "/beta", "cookie": {"beta": "*"}, "upstream": "b"},
			{"path": "/beta", "upstream": "a"},
			{"path": "/only", "header": {"X-Beta": "*"}, "upstream": "b"},
			{"path": "/orders/{id}", "method": ["POST", "PUT"], "upstream": "b"},
			{"host": "B.example", "path": "/", "upstream": "b"},
			{"path": "/api/", "strip": "/api", "upstream": "b"},
			{"path": "/v1/", "strip": "/v1", "prepend": "/v2", "upstream": "b"},
			{"path": "/docs/", "prepend": "/pages", "upstream": "b"},
			{"path": "/old", "redirect": {"to": "/new", "status": 301}},
			{"path": "/gone", "redirect": {"to": "https://x.example/"}},
			{"path": "/moved/", "strip": "/moved", "redirect": {"to": "https://x.example/new", "status": 308, "keep": true}},
			{"path": "/split", "split": [{"upstream": "a", "weight": 1}, {"upstream": "b", "weight": 0}]}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, target string
		set            func(*http.Request)
		status         int
		want           string
	}{
		{"GET", "/x?y=1", nil, 200, "a /x?y=1"},
		{"GET", "/beta", nil, 200, "a /beta"},
		{"GET", "/beta", func(r *http.Request) { r.Header.Set("X-Beta", "1") }, 200, "b /beta"},
		{"GET", "/beta", func(r *http.Request) { r.Header.Set("X-Beta", "2") }, 200, "a /beta"},
		{"GET", "/beta", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "beta", Value: "x"}) }, 200, "b /beta"},
		{"GET", "/only", nil, 404, "404 page not found\n"},
		{"POST", "/orders/7", nil, 200, "b /orders/7"},
		{"GET", "/orders/7", nil, 200, "a /orders/7"},
		{"GET", "/x", func(r *http.Request) { r.Host = "b.example:8080" }, 200, "b /x"},
		{"GET", "/x", func(r *http.Request) { r.Host = "b.Example" }, 200, "b /x"},
		{"GET", "/x", func(r *http.Request) { r.Host = "B.EXAMPLE.:8080" }, 200, "b /x"},
		{"GET", "/x", func(r *http.Request) { r.Host = "b.example.org." }, 200, "a /x"},
		{"GET", "/x", func(r *http.Request) { r.Host = "[::1]:8080" }, 200, "a /x"},
		{"GET", "/api/", nil, 200, "b /"},
		{"GET", "/api/users/a%2Fb", nil, 200, "b /users/a%2Fb"},
		{"GET", "/v1/", nil, 200, "b /v2/"},
		{"GET", "/v1/users/a%2Fb", nil, 200, "b /v2/users/a%2Fb"},
		{"GET", "/docs/x?y", nil, 200, "b /pages/docs/x?y"},
		{"GET", "/old", nil, 301, "/new"},
		{"GET", "/gone", nil, 302, "https://x.example/"},
		{"GET", "/moved/a%2Fb?c=d", nil, 308, "https://x.example/new/a%2Fb?c=d"},
		{"GET", "/split", nil, 200, "a /split"},
		{"GET", "/api/%2e%2e/x", nil, 400, "the path has . or .. as a segment, escaped or followed by a parameter\n"},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		if c.set != nil {
			c.set(r)
		}
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		got := w.Body.String()
		if c.status/100 == 3 {
			got = w.Header().Get("Location")
		}
		if w.Code != c.status || got != c.want {
			t.Errorf("%s %s: got %d %q, want %d %q", c.method, c.target, w.Code, got, c.status, c.want)
		}
	}
}

// TestSplit gives each upstream its share.
func TestSplit(t *testing.T) {
	var site config.Site
	defer site.Close()
	if err := site.Take(parse(t, `{"listen": [{"address": ":8080"}],
		"upstreams": {"a": {"servers": [{"address": "`+service(t, "a")+`"}]}, "b": {"servers": [{"address": "`+service(t, "b")+`"}]}},
		"routes": [{"path": "/", "split": [{"upstream": "a", "weight": 9}, {"upstream": "b", "weight": 1}]}]}`)); err != nil {
		t.Fatal(err)
	}
	b := 0
	const n = 2000
	for range n {
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if strings.HasPrefix(w.Body.String(), "b ") {
			b++
		}
	}
	if b < n/10-60 || b > n/10+60 { // four and a half standard deviations
		t.Errorf("b got %d of %d requests, want a tenth", b, n)
	}
}

// TestTake has files change under load, and no request fail; what stays of an upstream is
// kept, and a file that cannot be taken changes nothing.
func TestTake(t *testing.T) {
	a, b := service(t, "a"), service(t, "b")
	var site config.Site
	defer site.Close()
	text := func(servers, more string) *config.File {
		return parse(t, `{"listen": [{"address": ":8080"}], "upstreams": {"x": {"servers": [`+servers+`]`+more+`}}, "routes": [{"path": "/", "upstream": "x"}]}`)
	}
	one := func(address string, weight int) string {
		return fmt.Sprintf(`{"address": %q, "weight": %d}`, address, weight)
	}
	if err := site.Take(text(one(a, 1), "")); err != nil {
		t.Fatal(err)
	}
	s := servetest.NewServer(&site)
	defer s.Close()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := http.Get(s.URL)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 {
					t.Errorf("got %d %q, %v", res.StatusCode, body, err)
					return
				}
			}
		})
	}
	for i := range 300 {
		more := ""
		if i%10 == 0 {
			more = `, "attempts": 2` // another upstream, with a pool of its own
		}
		if err := site.Take(text(one(a, 1+i%7)+", "+one(b, i%3+1), more)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // for requests to meet it
	}
	for try := 0; site.Status()["x"][0].Requests == 0 && try < 1000; try++ {
		time.Sleep(10 * time.Millisecond) // a busy machine may have sent none since the last pool was made
	}
	close(stop)
	all.Wait()
	before := site.Status()["x"][0].Requests
	if err := site.Take(text(one(a, 5), "")); err != nil {
		t.Fatal(err)
	}
	if now := site.Status()["x"]; len(now) != 1 || now[0].Requests < before || now[0].Requests == 0 {
		t.Errorf("what was known of a is gone: %+v, had %d requests", now, before)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{` + rest + `"routes": [{"path": "/{id}", "upstream": "a"}]}`))
	f.Add([]byte(`{` + rest + `"middlewares": [{"requestid": {}}, {"secure": {}}, {"ratelimit": {"requests": 1}}], "routes": [{"path": "/", "upstream": "a", "shadow": {"upstream": "a"}}]}`))
	f.Add([]byte(`{"listen": [{"address": ""}], "upstreams": {"": null}, "routes": [{"split": [null]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.Parse(data)
		if (file == nil) != (err != nil) {
			t.Errorf("%q: %v, %v", data, file, err)
		}
		if err != nil {
			return
		}
		var site config.Site
		defer site.Close()
		for _, u := range file.Upstreams {
			if u.DNS != nil || u.Kubernetes != nil {
				return // it would look for these
			}
		}
		if len(file.Upstreams) < 5 {
			if err := site.Take(file); err != nil {
				t.Errorf("%q was parsed and cannot be taken: %v", data, err)
			}
		}
	})
}
