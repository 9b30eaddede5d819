package rivals_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	rscors "github.com/rs/cors"

	"github.com/tarehq/tare/serve/middleware/cors"
)

// call is a script's call of another site.
type call struct {
	origin, method string
	headers        []string // in lower case, none of which any site may send
	credentials    bool
}

// browserAdmits does what a browser does by the Fetch standard, and reports whether the
// script may read the answer.
func browserAdmits(h http.Handler, c call) bool {
	safe := func(method string) bool { return method == "GET" || method == "HEAD" || method == "POST" }
	if !safe(c.method) || len(c.headers) > 0 {
		r := httptest.NewRequest("OPTIONS", "/", nil)
		r.Header.Set("Origin", c.origin)
		r.Header.Set("Access-Control-Request-Method", c.method)
		if len(c.headers) > 0 {
			r.Header.Set("Access-Control-Request-Headers", strings.Join(slices.Sorted(slices.Values(c.headers)), ","))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		methods, headers := listOf(w, "Access-Control-Allow-Methods"), listOf(w, "Access-Control-Allow-Headers")
		any := func(list []string) bool { return !c.credentials && slices.Contains(list, "*") }
		if !passesCheck(w, c) || w.Code < 200 || w.Code > 299 || !safe(c.method) && !slices.Contains(methods, c.method) && !any(methods) {
			return false
		}
		for _, name := range c.headers {
			listed := slices.ContainsFunc(headers, func(s string) bool { return strings.EqualFold(s, name) })
			if !listed && (name == "authorization" || !any(headers)) {
				return false
			}
		}
	}
	r := httptest.NewRequest(c.method, "/", nil)
	r.Header.Set("Origin", c.origin)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return passesCheck(w, c)
}

func listOf(w http.ResponseWriter, field string) []string {
	var all []string
	for value := range strings.SplitSeq(strings.Join(w.Header()[field], ","), ",") {
		all = append(all, strings.Trim(value, " \t"))
	}
	return all
}

// passesCheck is the standard's CORS check.
func passesCheck(w http.ResponseWriter, c call) bool {
	got := strings.Join(w.Header()["Access-Control-Allow-Origin"], ", ")
	if got == "*" && !c.credentials {
		return true
	}
	return got == c.origin && (!c.credentials || w.Header().Get("Access-Control-Allow-Credentials") == "true")
}

// TestCORS holds serve/middleware/cors and rs/cors to one table. Options that are refused
// when the middleware is made admit nobody.
func TestCORS(t *testing.T) {
	const shop = "https://shop.example"
	own := cors.Options{Origins: []string{shop, "https://*.shop.example"}, Methods: []string{"PUT"}, Headers: []string{"Content-Type", "X-Trace"}, Credentials: true}
	any := cors.Options{Origins: []string{"*"}, Methods: []string{"PUT"}, Headers: []string{"*"}}
	for name, c := range map[string]struct {
		o    cors.Options
		call call
		want bool // ours, and what the options say by the standard
		rs   bool
	}{
		"simple":                     {own, call{shop, "GET", nil, false}, true, true},
		"simple, credentials":        {own, call{shop, "POST", nil, true}, true, true},
		"subdomain":                  {own, call{"https://eu.shop.example", "GET", nil, true}, true, true},
		"subdomain of a subdomain":   {own, call{"https://a.eu.shop.example", "GET", nil, true}, true, true},
		"method":                     {own, call{shop, "PUT", nil, true}, true, true},
		"field":                      {own, call{shop, "PUT", []string{"content-type"}, true}, true, true},
		"fields":                     {own, call{shop, "PUT", []string{"x-trace", "content-type"}, true}, true, true},
		"other method":               {own, call{shop, "DELETE", nil, true}, false, false},
		"other field":                {own, call{shop, "PUT", []string{"x-other"}, true}, false, false},
		"lower-case method":          {own, call{shop, "put", nil, true}, false, false},
		"HEAD needs no option":       {own, call{shop, "HEAD", nil, true}, true, true},
		"other site":                 {own, call{"https://evil.example", "GET", nil, false}, false, false},
		"without TLS":                {own, call{"http://shop.example", "GET", nil, false}, false, false},
		"other port":                 {own, call{shop + ":8443", "GET", nil, false}, false, false},
		"null":                       {own, call{"null", "GET", nil, false}, false, false},
		"site with the name's end":   {own, call{"https://evilshop.example", "GET", nil, false}, false, false},
		"site with the name's start": {own, call{"https://shop.example.evil.com", "GET", nil, false}, false, false},
		"path that ends so":          {own, call{"https://evil.com/.shop.example", "GET", nil, false}, false, true},
		"empty label":                {own, call{"https://..shop.example", "GET", nil, false}, false, true},
		"anybody":                    {any, call{shop, "PUT", []string{"x-any"}, false}, true, true},
		"anybody, null":              {any, call{"null", "GET", nil, false}, true, true},
		"anybody, credentials":       {any, call{shop, "GET", nil, true}, false, false},
		"anybody, authorization":     {any, call{shop, "GET", []string{"authorization"}, false}, false, true},

		"zero value":           {cors.Options{}, call{"https://evil.example", "GET", nil, false}, false, true},
		"null as an origin":    {cors.Options{Origins: []string{"null"}, Credentials: true}, call{"null", "GET", nil, true}, false, true},
		"wildcard, any site":   {cors.Options{Origins: []string{"https://*"}, Credentials: true}, call{"https://evil.example", "GET", nil, true}, false, true},
		"wildcard, top level":  {cors.Options{Origins: []string{"https://*.com"}, Credentials: true}, call{"https://evil.com", "GET", nil, true}, false, true},
		"wildcard in a label":  {cors.Options{Origins: []string{"https://*shop.com"}, Credentials: true}, call{"https://evilshop.com", "GET", nil, true}, false, true},
		"wildcard at the end":  {cors.Options{Origins: []string{"https://shop.*"}, Credentials: true}, call{"https://shop.evil.com", "GET", nil, true}, false, true},
		"plain HTTP":           {cors.Options{Origins: []string{"http://shop.com"}, Credentials: true}, call{"http://shop.com", "GET", nil, true}, false, true},
		"any field, by cookie": {cors.Options{Origins: []string{shop}, Headers: []string{"*"}, Credentials: true}, call{shop, "GET", []string{"x-any"}, true}, false, true},
	} {
		ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		var got bool
		if mw, err := cors.New(c.o); err == nil {
			got = browserAdmits(mw(ok), c.call)
		}
		rs := rscors.Options{AllowedOrigins: c.o.Origins, AllowedHeaders: c.o.Headers, AllowCredentials: c.o.Credentials}
		if c.o.Methods != nil {
			rs.AllowedMethods = append([]string{"GET", "HEAD", "POST"}, c.o.Methods...)
		}
		if got != c.want {
			t.Errorf("%s: ours admits %v, want %v", name, got, c.want)
		}
		if got := browserAdmits(rscors.New(rs).Handler(ok), c.call); got != c.rs {
			t.Errorf("%s: rs/cors admits %v, expected %v", name, got, c.rs)
		}
	}
}
