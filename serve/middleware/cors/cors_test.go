package cors_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/cors"
)

func Example() {
	mw, err := cors.New(cors.Options{
		Origins: []string{"https://shop.example", "https://*.shop.example"},
		Methods: []string{"PUT"},
		Headers: []string{"Content-Type"},
	})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest("OPTIONS", "/orders/7", nil)
	r.Header.Set("Origin", "https://eu.shop.example")
	r.Header.Set("Access-Control-Request-Method", "PUT")
	w := httptest.NewRecorder()
	mw(http.NotFoundHandler()).ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Access-Control-Allow-Origin"), w.Header().Get("Access-Control-Allow-Methods"))
	// Output: 204 https://eu.shop.example PUT
}

// serve asks a handler that adds to Vary.
func serve(t testing.TB, o cors.Options, method string, fields ...string) *http.Response {
	t.Helper()
	mw, err := cors.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, "/", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	mw(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "Accept")
		fmt.Fprint(w, "handled")
	})).ServeHTTP(w, r)
	return w.Result()
}

const (
	shop   = "https://shop.example"
	method = "Access-Control-Request-Method"
)

// TestAnswers compares all fields of the protocol, and the status.
func TestAnswers(t *testing.T) {
	one := cors.Options{Origins: []string{shop}}
	full := cors.Options{Origins: []string{shop}, Methods: []string{"PUT", "DELETE"}, Headers: []string{"Authorization", "X-Trace"},
		Expose: []string{"X-Total"}, Credentials: true, MaxAge: time.Hour}
	any := cors.Options{Origins: []string{"*"}, Methods: []string{"*"}, Headers: []string{"*", "Authorization"}, Expose: []string{"*"}, MaxAge: -1}
	for name, c := range map[string]struct {
		o      cors.Options
		method string
		fields []string
		want   string
	}{
		"nobody":                      {cors.Options{}, "GET", []string{"Origin", shop}, "200 Vary=Origin,Accept"},
		"nobody, preflight":           {cors.Options{}, "OPTIONS", []string{"Origin", shop, method, "PUT"}, "403 Vary=Origin, Access-Control-Request-Method"},
		"no origin":                   {one, "GET", nil, "200 Vary=Origin,Accept"},
		"origin":                      {one, "GET", []string{"Origin", shop}, "200 Allow-Origin=https://shop.example Vary=Origin,Accept"},
		"other origin":                {one, "POST", []string{"Origin", "https://evil.example"}, "200 Vary=Origin,Accept"},
		"null":                        {one, "GET", []string{"Origin", "null"}, "200 Vary=Origin,Accept"},
		"two origins":                 {one, "GET", []string{"Origin", shop, "Origin", shop}, "200 Vary=Origin,Accept"},
		"empty origin":                {one, "GET", []string{"Origin", ""}, "200 Vary=Origin,Accept"},
		"OPTIONS of the site's":       {one, "OPTIONS", nil, "200 Vary=Origin,Accept"},
		"OPTIONS, no preflight":       {one, "OPTIONS", []string{"Origin", shop}, "200 Allow-Origin=https://shop.example Vary=Origin,Accept"},
		"GET with a preflight's":      {one, "GET", []string{"Origin", shop, method, "PUT"}, "200 Allow-Origin=https://shop.example Vary=Origin,Accept"},
		"preflight":                   {one, "OPTIONS", []string{"Origin", shop, method, "PUT"}, "204 Allow-Origin=https://shop.example Vary=Origin, Access-Control-Request-Method"},
		"preflight of another origin": {full, "OPTIONS", []string{"Origin", "https://evil.example", method, "PUT"}, "403 Vary=Origin, Access-Control-Request-Method"},
		"all fields":                  {full, "GET", []string{"Origin", shop}, "200 Allow-Credentials=true Allow-Origin=https://shop.example Expose-Headers=X-Total Vary=Origin,Accept"},
		"all fields, preflight": {full, "OPTIONS", []string{"Origin", shop, method, "PUT"}, "204 Allow-Credentials=true Allow-Headers=Authorization, X-Trace " +
			"Allow-Methods=PUT, DELETE Allow-Origin=https://shop.example Max-Age=3600 Vary=Origin, Access-Control-Request-Method"},
		"private network": {full, "OPTIONS", []string{"Origin", shop, method, "GET", "Access-Control-Request-Private-Network", "true"}, "204 Allow-Credentials=true " +
			"Allow-Headers=Authorization, X-Trace Allow-Methods=PUT, DELETE Allow-Origin=https://shop.example Max-Age=3600 Vary=Origin, Access-Control-Request-Method"},
		"any, no origin": {any, "GET", nil, "200 Allow-Origin=* Expose-Headers=* Vary=Accept"},
		"any":            {any, "GET", []string{"Origin", "null"}, "200 Allow-Origin=* Expose-Headers=* Vary=Accept"},
		"any, preflight": {any, "OPTIONS", []string{"Origin", shop, method, "PUT"}, "204 Allow-Headers=*, Authorization Allow-Methods=* Allow-Origin=* Max-Age=0 Vary=Origin, Access-Control-Request-Method"},
	} {
		resp := serve(t, c.o, c.method, c.fields...)
		var got []string
		for field, values := range resp.Header {
			if short, ok := strings.CutPrefix(field, "Access-Control-"); ok || field == "Vary" {
				got = append(got, short+"="+strings.Join(values, ","))
			}
		}
		slices.Sort(got)
		if got := strings.Join(append([]string{fmt.Sprint(resp.StatusCode)}, got...), " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestOrigins is the table of what does and does not lie below a wildcard, and of
// origins that only look like an admitted one.
func TestOrigins(t *testing.T) {
	o := cors.Options{Origins: []string{shop, "https://*.shop.example", "http://localhost:3000", "https://*.test.example:8443", "https://[2001:db8::1]", "http://127.0.0.1:8080"}}
	for origin, want := range map[string]bool{
		shop:                                                     true,
		"https://eu.shop.example":                                true,
		"https://a.b.shop.example":                               true,
		"https://x-1_y.shop.example":                             true,
		"http://localhost:3000":                                  true,
		"https://a.test.example:8443":                            true,
		"https://[2001:db8::1]":                                  true,
		"http://127.0.0.1:8080":                                  true,
		"http://shop.example":                                    false,
		"https://shop.example:8443":                              false,
		"https://shop.example:443":                               false,
		"https://shop.example.":                                  false,
		"https://shop.example.evil.com":                          false,
		"https://evilshop.example":                               false,
		"https://.shop.example":                                  false,
		"https://a..shop.example":                                false,
		"https://..shop.example":                                 false,
		"https://evil.com/.shop.example":                         false,
		"https://evil.com?.shop.example":                         false,
		"https://evil.com#.shop.example":                         false,
		"https://evil.com:1.shop.example":                        false,
		"https://user@eu.shop.example":                           false,
		"https://EU.shop.example":                                false,
		"HTTPS://shop.example":                                   false,
		"http://eu.shop.example":                                 false,
		"https://eu.shop.example:444":                            false,
		"https://test.example:8443":                              false,
		"https://a.test.example":                                 false,
		"https://a\x00.shop.example":                             false,
		"https://ä.shop.example":                                 false,
		"https://" + strings.Repeat("a.", 1000) + "shop.example": false,
		" " + shop:            false,
		shop + ", " + shop:    false,
		"null":                false,
		"http://localhost":    false,
		"http://127.0.0.1":    false,
		"https://2001:db8::1": false,
	} {
		got := serve(t, o, "GET", "Origin", origin).Header.Get("Access-Control-Allow-Origin")
		if want && got != origin || !want && got != "" {
			t.Errorf("origin %q: got %q, admitted: %v", origin, got, want)
		}
	}
}

// TestRefused has options refused when the middleware is made, each with the reason.
func TestRefused(t *testing.T) {
	origin := func(s string) cors.Options { return cors.Options{Origins: []string{s}} }
	for _, c := range []struct {
		o   cors.Options
		why string
	}{
		{origin("null"), "any page can have this origin"},
		{origin("shop.example"), "has a scheme"},
		{origin("ftp://shop.example"), "not http or https"},
		{origin("https://shop.example/"), "no slash"},
		{origin("https://shop.example/path"), "no path"},
		{origin("https://u@shop.example"), "no user"},
		{origin("https://Shop.example"), "lower case"},
		{origin("https://schöp.example"), "punycode"},
		{origin("https://shop.example:443"), "never match"},
		{origin("http://shop.example:80"), "never match"},
		{origin("https://shop.example:0"), "port"},
		{origin("https://shop.example:+1"), "port"},
		{origin("https://shop.example:01"), "port"},
		{origin("https://shop.example:65536"), "port"},
		{origin("https://shop.example:*"), "port"},
		{origin("https://"), "not a name"},
		{origin("https://*"), "beginning"},
		{origin("https://*.example"), "top-level domain"},
		{origin("https://*.*.example"), "beginning"},
		{origin("https://shop*.example"), "beginning"},
		{origin("https://shop.*"), "beginning"},
		{origin("https://*shop.example"), "beginning"},
		{origin("https://*.1.2.3.4"), "behind a wildcard"},
		{origin("https://1.2.3"), "not an IPv4"},
		{origin("https://01.2.3.4"), "not an IPv4"},
		{origin("https://[2001:db8:0::1]"), "short form"},
		{origin("https://[fe80::1%25eth0]"), "short form"},
		{origin("https://[::1"), "not an IPv6"},
		{origin("https://" + strings.Repeat("a", 300)), "longer"},
		{origin("http://*.shop.example"), "without TLS"},
		{cors.Options{Origins: []string{"http://shop.example"}, Credentials: true}, "without TLS"},
		{cors.Options{Origins: []string{"*"}, Credentials: true}, "without Credentials"},
		{cors.Options{Methods: []string{"*"}, Credentials: true}, "without Credentials"},
		{cors.Options{Headers: []string{"*"}, Credentials: true}, "without Credentials"},
		{cors.Options{Expose: []string{"*"}, Credentials: true}, "without Credentials"},
		{cors.Options{Methods: []string{"TRACE"}}, "no browser sends"},
		{cors.Options{Methods: []string{"patch"}}, "upper case"},
		{cors.Options{Methods: []string{"A B"}}, "not a method"},
		{cors.Options{Headers: []string{"Cookie"}}, "no browser has scripts set"},
		{cors.Options{Headers: []string{"Sec-Fetch-Site"}}, "no browser has scripts set"},
		{cors.Options{Headers: []string{"X:"}}, "not a field's name"},
		{cors.Options{Expose: []string{"Set-Cookie"}}, "no browser shows"},
		{cors.Options{Expose: []string{""}}, "not a field's name"},
		{cors.Options{MaxAge: 25 * time.Hour}, "no browser keeps it"},
	} {
		if _, err := cors.New(c.o); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v, want %q in it", c.o, err, c.why)
		}
	}
	for _, o := range []cors.Options{
		origin("http://shop.example"), origin("http://*.localhost:3000"), origin("http://intranet"),
		{Origins: []string{"http://localhost:5173", "http://[::1]:8080", "http://127.0.0.1"}, Credentials: true},
		{Origins: []string{"http://*.shop.example"}, Credentials: true, Insecure: true},
		{Methods: []string{"PATCH", "PROPFIND", "custom"}},
	} {
		if _, err := cors.New(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestRequestsAreApart has handlers add to the fields: the next answer does not have it.
func TestRequestsAreApart(t *testing.T) {
	mw, err := cors.New(cors.Options{Origins: []string{shop}, Expose: []string{"X-Total"}})
	if err != nil {
		t.Fatal(err)
	}
	h := mw(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, field := range []string{"Vary", "Access-Control-Expose-Headers", "Access-Control-Allow-Origin"} {
			if got := w.Header()[field]; len(got) != 1 {
				t.Errorf("%s has values of another request: %q", field, got)
			}
			w.Header().Add(field, "other")
		}
	}))
	for range 2 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Origin", shop)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// FuzzOrigins has any pattern and any origin: what is admitted is the pattern itself, or
// has its scheme, its port and a host below its own.
func FuzzOrigins(f *testing.F) {
	f.Add("https://*.shop.example", "https://eu.shop.example")
	f.Add("https://shop.example:8443", "https://shop.example:8443")
	f.Add("http://[::1]:80", "http://[::1]")
	f.Fuzz(func(t *testing.T, pattern, origin string) {
		mw, err := cors.New(cors.Options{Origins: []string{pattern}})
		if err != nil || pattern == "*" {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Origin"] = []string{origin}
		w := httptest.NewRecorder()
		mw(http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Header().Get("Access-Control-Allow-Origin") == "" {
			if pattern == origin && !strings.Contains(pattern, "*") {
				t.Fatalf("%q is not admitted by itself", origin)
			}
			return
		}
		before, after, below := strings.Cut(pattern, "*")
		if !below && pattern != origin {
			t.Fatalf("%q admits %q", pattern, origin)
		}
		label, ok := strings.CutPrefix(origin, before)
		label, ok2 := strings.CutSuffix(label, after)
		if below && (!ok || !ok2 || strings.ContainsAny(label, ":/?#@*") || label == "") {
			t.Fatalf("%q admits %q", pattern, origin)
		}
	})
}

func request(method, origin string) *http.Request {
	r := httptest.NewRequest(method, "/", nil)
	r.Header.Set("Origin", origin)
	if method == http.MethodOptions {
		r.Header.Set("Access-Control-Request-Method", "PUT")
	}
	return r
}

// sink keeps nothing of an answer.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

var kinds = map[string]*http.Request{
	"exact":     request("GET", shop),
	"below":     request("GET", "https://eu.shop.example"),
	"refused":   request("GET", "https://evil.example"),
	"preflight": request("OPTIONS", shop),
}

// handler answers nothing; its middleware has one origin and one pattern.
func handler(t testing.TB) http.Handler {
	mw, err := cors.New(cors.Options{Origins: []string{shop, "https://*.shop.example"}, Methods: []string{"PUT"}, Credentials: true})
	if err != nil {
		t.Fatal(err)
	}
	return mw(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

func TestAllocs(t *testing.T) {
	h, w := handler(t), &sink{http.Header{}}
	for name, r := range kinds {
		n := testing.AllocsPerRun(1000, func() {
			clear(w.header)
			h.ServeHTTP(w, r)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a request", name, n)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	h, w := handler(b), &sink{http.Header{}}
	for name, r := range kinds {
		b.Run("kind="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}
