package lab_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
)

// What is asked of an arm before the load is what the load asks, and one of several
// fields of a name is enough, as it is there.
func TestReadyAsksAsTheLoadDoes(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "shop.example" {
			http.Error(w, r.Host, http.StatusMisdirectedRequest)
			return
		}
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Vary", "Origin")
		fmt.Fprint(w, "hello")
	}))
	defer srv.Close()
	s := small(t)
	s.Arms = []study.Arm{{Name: "a", URL: srv.URL}}
	s.Workloads = s.Workloads[:1]
	target := &s.Workloads[0].Targets[0]
	target.Header = map[string]string{"Host": "shop.example"}
	target.Verify.Header = map[string]string{"Vary": "Origin"}
	run, err := lab.Run(t.Context(), options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range run.Trials {
		if tr.Requests == 0 {
			t.Errorf("trial %d: %q", tr.Seq, tr.Invalid)
		}
	}
}

// How an answer is sent is a field as any other to the load, and so before it.
func TestReadyKnowsTransferEncoding(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, "hello")
	}))
	defer srv.Close()
	want := study.Target{Path: "/", Verify: study.Verify{Header: map[string]string{"Transfer-Encoding": "chunked"}}}
	if err := lab.Ask(t.Context(), srv.URL, want); err != nil {
		t.Error(err)
	}
	want.Verify.Header["Transfer-Encoding"] = "gzip"
	if err := lab.Ask(t.Context(), srv.URL, want); err == nil || !strings.Contains(err.Error(), `header Transfer-Encoding is ["chunked"], want "gzip"`) {
		t.Errorf("got %v, want what it is", err)
	}
}

// All fields of a name are shown where none is as it should be.
func TestUnlikeHeader(t *testing.T) {
	v := study.Verify{Header: map[string]string{"Vary": "Cookie"}}
	for _, tt := range []struct {
		header http.Header
		want   string
	}{
		{http.Header{"Vary": {"Accept", "Origin"}}, `header Vary is ["Accept" "Origin"], want "Cookie"`},
		{http.Header{}, `header Vary is [], want "Cookie"`},
	} {
		if err := lab.Unlike(v, tt.header); err == nil || err.Error() != tt.want {
			t.Errorf("%v: got %v, want %s", tt.header, err, tt.want)
		}
	}
}

// Idle connections go where the load goes: to the usual port of a URL that names
// none, and by TLS to one that asks for it.
func TestIdleConnectionsOfURLs(t *testing.T) {
	if err := lab.OpenIdle(t.Context(), 1, "http://127.0.0.1"); err != nil && strings.Contains(err.Error(), "missing port") {
		t.Errorf("a URL without a port: %v", err)
	}
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	if err := lab.OpenIdle(t.Context(), 1, srv.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want that TLS was tried and the server's certificate is nobody's", err)
	}
}
