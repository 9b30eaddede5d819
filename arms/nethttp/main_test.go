package main

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func TestAnswersEveryRoute(t *testing.T) {
	for name, table := range map[string]routes.Table{"ping": routes.Ping(), "ten": routes.Ten(), "user": routes.User(), "github": routes.GitHub(), "fprintf": routes.User()} {
		h := handler(table)
		if name == "fprintf" {
			h = fprintf(table)
		}
		for _, r := range table {
			want := r.Example()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(want.Method, want.Path, nil))
			if w.Code != 200 || w.Body.String() != want.Body || w.Header().Get("Content-Type") != want.ContentType {
				t.Errorf("%s: %s %s: got %d %q of %q, want 200 %q of %q", name, want.Method, want.Path,
					w.Code, w.Body, w.Header().Get("Content-Type"), want.Body, want.ContentType)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/no/such/route", nil))
		if w.Code != 404 || w.Body.String() != routes.NotFound {
			t.Errorf("%s: a miss: got %d %q, want 404 %q", name, w.Code, w.Body, routes.NotFound)
		}
	}
}

// A loop of matches answers as the handlers do, and calls none.
func TestMatching(t *testing.T) {
	mux := handler(routes.Ten())
	called := 0
	mux.HandleFunc("GET /called", func(http.ResponseWriter, *http.Request) { called++ })
	for _, r := range routes.Ten() {
		want := r.Example()
		do := matching(mux)(arm.LoopRequest{Method: want.Method, Target: want.Path})
		if got := do(); got.Status != 200 || string(got.Body) != want.Body {
			t.Errorf("%s %s: got %d %q, want 200 %q", want.Method, want.Path, got.Status, got.Body, want.Body)
		}
	}
	if got := matching(mux)(arm.LoopRequest{Target: "/no/such/route"})(); got.Status != 404 || string(got.Body) != routes.NotFound {
		t.Errorf("a miss: got %d %q", got.Status, got.Body)
	}
	do := matching(mux)(arm.LoopRequest{Target: "/called"})
	for range 3 {
		do()
	}
	if called != 1 {
		t.Errorf("the handler was called %d times, want once, when the request was prepared", called)
	}
}

// A handshake in memory is what the words say: resumed with tickets from the second on,
// and with a protocol agreed on where the server offers ALPN.
func TestShakesHands(t *testing.T) {
	for words, want := range map[string]struct {
		resumed  bool
		protocol string
		version  uint16
	}{
		"1.3,ecdsa,no-tickets":         {false, "http/1.1", tls.VersionTLS13},
		"1.3,ecdsa":                    {true, "http/1.1", tls.VersionTLS13},
		"1.3,ecdsa,no-tickets,no-alpn": {false, "", tls.VersionTLS13},
		"1.2,ecdsa":                    {true, "http/1.1", tls.VersionTLS12},
	} {
		config, err := secureConfig(words)
		if err != nil {
			t.Fatal(err)
		}
		client := newClient()
		for i := range 3 {
			got, err := shakeHands(client, config)
			if err != nil || got.DidResume != (want.resumed && i > 0) || got.NegotiatedProtocol != want.protocol || got.Version != want.version {
				t.Errorf("%s, handshake %d: got resumed %t, protocol %q, version %x, %v; want %+v", words, i, got.DidResume, got.NegotiatedProtocol, got.Version, err, want)
			}
		}
		w := httptest.NewRecorder()
		shakingHands(config)(w, httptest.NewRequest("GET", "/handshake", nil))
		if w.Code != 200 || w.Body.String() != "ok\n" {
			t.Errorf("%s: got %d %q", words, w.Code, w.Body)
		}
	}
	if _, err := shakeHands(newClient(), &tls.Config{}); err == nil {
		t.Error("a server without a certificate: got no error")
	}
}
