package routing_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/serve/proxy/internal/routing"
)

// TestPlain has no route pass requests on whose path is another route's to some servers.
func TestPlain(t *testing.T) {
	mux := http.NewServeMux()
	for _, pattern := range []string{"/", "/admin/", "/users/{id}"} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Route", pattern) })
	}
	for path, want := range map[string]string{
		"/admin/x": "/admin/", "/admin/;v=1/x": "/admin/", "/a;v=1/b": "/", "/users/7;v=1": "/users/{id}", "/users/a%2Fb;v=1": "/users/{id}", "/users/50%25": "/users/{id}", "/b%5Cc": "/",
		"/admin;v=1/x": "", "/admin;/x": "", "/;v=1/admin/x": "", `/\admin/x`: "", "/%5cadmin/x": "", "/admin%5Cx": "", "/users;v=1/7": "", "/x/..;/admin/": "",
	} {
		w := httptest.NewRecorder()
		(&routing.Plain{Routes: mux}).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got := w.Header().Get("Route"); got != want || (want == "") != (w.Code == http.StatusBadRequest) {
			t.Errorf("%s: status %d, route %q, want %q", path, w.Code, got, want)
		}
	}
}

// TestDots has paths whose dots a server may resolve, though routes do not, lead neither to another
// route nor out of what is put before them.
func TestDots(t *testing.T) {
	h := &routing.Choices{}
	h.Add(routing.Fields{}, &routing.Rewrite{Prepend: "/public", Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Path", r.URL.Path)
	})})
	for path, want := range map[string]string{
		"/a": "/public/a", "/a..b": "/public/a..b", "/.well-known/..x": "/public/.well-known/..x", "/a%2Fb;v=1": "/public/a/b;v=1", `/a%5Cb`: `/public/a\b`,
		"/%2e%2e/secret": "", "/a/..%2fsecret": "", "/a/%2E%2E": "", "/%2e/secret": "", "/a%2f.%2fb": "",
		"/a/..;/secret": "", "/a/..;v=1/secret": "", "/.;x/secret": "", `/a/..%5Csecret`: "", `/a/..\secret`: "", `/a\..`: "",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got := w.Header().Get("Path"); got != want || (want == "") != (w.Code == http.StatusBadRequest) {
			t.Errorf("%s: status %d, path %q, want %q", path, w.Code, got, want)
		}
	}
}

// TestRedirect has redirects keep the request's path, which leads to no other host.
func TestRedirect(t *testing.T) {
	for _, c := range []struct {
		to, path, want string
		keep           bool
	}{
		{"/new", "/old?a=1", "/new", false},
		{"https://shop.example", "/a%2Fb/?c=d", "https://shop.example/a%2Fb/?c=d", true},
		{"https://shop.example", "//evil.example/x", "https://shop.example/evil.example/x", true},
		{"https://shop.example", "*", "https://shop.example/*", true},
		{"/shop", "/a?b", "/shop/a?b", true},
		{"/shop", "//evil.example", "/shop/evil.example", true},
	} {
		w := httptest.NewRecorder()
		(&routing.Redirect{To: c.to, Status: 301, Keep: c.keep}).ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if got := w.Header().Get("Location"); got != c.want || w.Code != 301 {
			t.Errorf("%s to %s: got %d %q, want %q", c.path, c.to, w.Code, got, c.want)
		}
	}
}
