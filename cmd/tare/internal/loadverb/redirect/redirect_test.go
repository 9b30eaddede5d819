package redirect_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/loadverb/redirect"
	"github.com/tarehq/tare/internal/forward"
	"github.com/tarehq/tare/load"
)

// Redirects are followed to the end before the load, and secrets go to no other host, not
// even while it is found out where redirects lead.
func TestFollowRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-Api-Key") != "" {
			t.Errorf("the other host got %v", r.Header)
		}
	}))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			http.Redirect(w, r, "/b?x=1", http.StatusFound)
		case "/b":
			http.Redirect(w, r, "/c", http.StatusMovedPermanently)
		case "/away":
			http.Redirect(w, r, other.URL+"/d", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	}))
	defer s.Close()
	secret := []load.Field{{Name: "authorization", Value: "Basic x"}}
	for _, tt := range []struct {
		target     load.Target
		want, fail string
	}{
		{load.Target{URL: s.URL + "/a"}, s.URL + "/c", ""},
		{load.Target{URL: strings.TrimPrefix(s.URL, "http://") + "/a", Header: secret}, s.URL + "/c", ""},
		{load.Target{URL: s.URL + "/c|d"}, s.URL + "/c|d", ""},
		{load.Target{URL: s.URL + "/a", Method: "POST"}, s.URL + "/a", ""},
		{load.Target{URL: s.URL + "/away"}, other.URL + "/d", ""},
		{load.Target{URL: s.URL + "/away", Header: []load.Field{{Name: "Accept", Value: "text/html"}}}, other.URL + "/d", ""},
		{load.Target{URL: s.URL + "/away", Header: secret}, "", "they lead to " + other.URL + ", which would get the field authorization"},
		{load.Target{URL: s.URL + "/away", Header: []load.Field{{Name: "X-Api-Key", Value: "x"}}}, "", "which would get the field X-Api-Key"},
		{load.Target{URL: s.URL + "/away", Header: []load.Field{{Name: "Host", Value: "shop"}}}, "", "which would get the field Host"},
		{load.Target{URL: s.URL + "/loop"}, "", "stopped after 10 redirects"},
	} {
		o := &load.Options{Targets: []load.Target{tt.target}}
		err := redirect.Follow(t.Context(), o)
		if tt.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("%s: got error %v, want one with %q", tt.target.URL, err, tt.fail)
			}
			continue
		}
		if err != nil || o.Targets[0].URL != tt.want {
			t.Errorf("%s: got %s (%v), want %s", tt.target.URL, o.Targets[0].URL, err, tt.want)
		}
	}
}

// Redirects are followed through the proxy of the load.
func TestFollowThroughProxy(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusFound)
		}
	}))
	defer s.Close()
	via := forward.Start(t, "Basic YWRhOng=")
	o := &load.Options{Targets: []load.Target{{URL: s.URL + "/a"}}, Proxy: "ada:x@" + strings.TrimPrefix(via.URL, "http://")}
	if err := redirect.Follow(t.Context(), o); err != nil || o.Targets[0].URL != s.URL+"/b" || via.Forwarded.Load() != 2 {
		t.Errorf("got %s (%v), %d requests through the proxy; want %s/b by two", o.Targets[0].URL, err, via.Forwarded.Load(), s.URL)
	}
	o.Proxy = "http://ada:secret%@proxy"
	if err := redirect.Follow(t.Context(), o); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a malformed URL of the proxy: got %v, want an error without its password", err)
	}
}
