package secure_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/secure"
)

func Example() {
	h := secure.New(secure.Options{Policy: "default-src 'self'"})(http.NotFoundHandler())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Header().Get("Content-Security-Policy"))
	fmt.Println(w.Header().Get("X-Content-Type-Options"))
	// Output:
	// default-src 'self'
	// nosniff
}

// fields asks a handler that adds to a field, and returns the answer's.
func fields(o secure.Options, overTLS bool) http.Header {
	h := secure.New(o)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Content-Security-Policy", "sandbox")
		w.Header().Set("Referrer-Policy", "origin")
	}))
	r := httptest.NewRequest("GET", "/", nil)
	if overTLS {
		r.TLS = new(tls.ConnectionState)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result().Header
}

func TestFields(t *testing.T) {
	for name, c := range map[string]struct {
		o     secure.Options
		tls   bool
		field string
		want  string
	}{
		"default, plain":  {secure.Options{}, false, "Strict-Transport-Security", ""},
		"default, TLS":    {secure.Options{}, true, "Strict-Transport-Security", "max-age=63072000"},
		"behind a proxy":  {secure.Options{BehindTLS: true, HSTS: time.Hour, Subdomains: true}, false, "Strict-Transport-Security", "max-age=3600; includeSubDomains"},
		"no HSTS":         {secure.Options{HSTS: -1}, true, "Strict-Transport-Security", ""},
		"frames":          {secure.Options{}, false, "X-Frame-Options", "DENY"},
		"not sent":        {secure.Options{Frame: "-"}, false, "X-Frame-Options", ""},
		"handler's":       {secure.Options{}, false, "Referrer-Policy", "origin"},
		"permissions":     {secure.Options{Permissions: "camera=()"}, false, "Permissions-Policy", "camera=()"},
		"no permissions":  {secure.Options{}, false, "Permissions-Policy", ""},
		"resource policy": {secure.Options{Resource: "cross-origin"}, false, "Cross-Origin-Resource-Policy", "cross-origin"},
	} {
		if got := fields(c.o, c.tls).Get(c.field); got != c.want {
			t.Errorf("%s: %s is %q, want %q", name, c.field, got, c.want)
		}
	}
}

// TestRequestsAreApart has a handler add to a field: the next answer does not have it.
func TestRequestsAreApart(t *testing.T) {
	o := secure.Options{}
	h := secure.New(o)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if got := w.Header()["Content-Security-Policy"]; len(got) != 1 {
			t.Errorf("fields of another request: %q", got)
		}
		w.Header().Add("Content-Security-Policy", "sandbox")
	}))
	for range 2 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
}

func BenchmarkRequest(b *testing.B) {
	h := secure.New(secure.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
