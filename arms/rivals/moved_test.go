package rivals_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/recovery"
	"github.com/tarehq/tare/serve/middleware/requestid"
	"github.com/tarehq/tare/serve/servetest"
)

// routeContext is what chi looks its routing up by.
var routeContext = chain.KeyOf[*chi.Context](chi.RouteCtxKey)

// routeInPlace has chi route the request itself and not a copy, so that layers outside see the
// pattern that it matched. It is the innermost layer of a chain around the router.
func routeInPlace(router chi.Router) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			at := chi.NewRouteContext()
			at.Routes = router
			defer func() { r.Pattern = at.RoutePattern() }() // a middleware within may have copied r
			next.ServeHTTP(w, routeContext.With(r, at))
		})
	}
}

// newShop is a chi service whose middlewares were replaced, its routers and handlers kept.
func newShop() chi.Router {
	shop := chi.NewRouter()
	shop.Get("/health", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	shop.Route("/orders", func(r chi.Router) {
		r.Get("/{id}", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, chi.URLParam(r, "id"), " ", requestid.From(r.Context()), " ", clientaddr.From(r))
		})
	})
	shop.Mount("/bills", bills())
	return shop
}

// bills is a router whose own middlewares copy the request, as chi's do.
func bills() chi.Router {
	r := chi.NewRouter()
	r.Use(middleware.WithValue("currency", "EUR"))
	r.Get("/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Context().Value("currency")) })
	r.Get("/{id}/lost", func(http.ResponseWriter, *http.Request) { panic("lost") })
	return r
}

// TestChiMoved has a chi service behind the stack, on package serve and on net/http: handlers
// find what they did before, and log and metrics have chi's patterns.
func TestChiMoved(t *testing.T) {
	for name, serving := range map[string]func(http.Handler) (string, func()){
		"serve":   func(h http.Handler) (string, func()) { s := servetest.NewServer(h); return s.URL, s.Close },
		"nethttp": func(h http.Handler) (string, func()) { s := httptest.NewServer(h); return s.URL, s.Close },
	} {
		t.Run(name, func(t *testing.T) { testChiMoved(t, serving) })
	}
}

func testChiMoved(t *testing.T, serving func(http.Handler) (url string, end func())) {
	var lines, page bytes.Buffer
	log, err := accesslog.New(accesslog.Options{To: &lines})
	if err != nil {
		t.Fatal(err)
	}
	counts, err := metrics.New(metrics.Options{NoRuntime: true})
	if err != nil {
		t.Fatal(err)
	}
	shop := newShop()
	url, end := serving(chain.Must(chain.New(
		recovery.New(recovery.Options{Log: slog.New(slog.DiscardHandler)}),
		requestid.New(requestid.Options{}),
		clientaddr.New(clientaddr.Options{Trusted: clientaddr.Private()}),
		log.Middleware,
		counts.Middleware,
		routeInPlace(shop),
	).Then(shop)))
	for path, want := range map[string]string{
		"/orders/7": "7 id-1 203.0.113.7", "/health": "ok", "/none": "404 page not found\n", "/bills/7": "EUR", "/bills/7/lost": "Internal Server Error\n",
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Request-Id", "id-1")
		r.Header.Set("X-Forwarded-For", "203.0.113.7")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	end()
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	routes := map[string]string{"/orders/7": "/orders/{id}", "/health": "/health", "/none": "", "/bills/7": "/bills/{id}", "/bills/7/lost": "/bills/{id}/lost"}
	for line := range strings.Lines(lines.String()) {
		var got struct{ Target, Route, ID string }
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Route != routes[got.Target] || got.ID != "id-1" {
			t.Errorf("the log has %q, %v, want the route %q", line, err, routes[got.Target])
		}
		delete(routes, got.Target)
	}
	if len(routes) > 0 {
		t.Errorf("the log lacks %v", routes)
	}
	if _, err := counts.WriteTo(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`http_response_status_code="200",http_route="/orders/{id}"`, `http_response_status_code="404",http_route=""`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the metrics lack %s:\n%s", want, &page)
		}
	}
}
