package answer_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/study"
)

// How an answer is sent is a field as any other to the load, and so before it.
func TestReadyKnowsTransferEncoding(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, "hello")
	}))
	defer srv.Close()
	want := study.Target{Path: "/", Verify: study.Verify{Header: map[string]string{"Transfer-Encoding": "chunked"}}}
	if err := answer.Ask(t.Context(), srv.URL, want); err != nil {
		t.Error(err)
	}
	want.Verify.Header["Transfer-Encoding"] = "gzip"
	if err := answer.Ask(t.Context(), srv.URL, want); err == nil || !strings.Contains(err.Error(), `header Transfer-Encoding is ["chunked"], want "gzip"`) {
		t.Errorf("got %v, want what it is", err)
	}
}

// A service on this machine may show any certificate, and is not taken for one that answers
// 400 when it was asked without TLS.
func TestFetchTLS(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	srv := httptest.NewTLSServer(hello)
	defer srv.Close()
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	if a, err := answer.Fetch(t.Context(), srv.URL, study.Target{Path: "/"}); err != nil || string(a.Body) != "hello" {
		t.Errorf("got %q, %v", a.Body, err)
	}
	plain := "http" + strings.TrimPrefix(srv.URL, "https")
	if a, err := answer.Fetch(t.Context(), plain, study.Target{Path: "/"}); err == nil || !strings.Contains(err.Error(), "speaks TLS") {
		t.Errorf("in clear: got status %d, %v", a.Status, err)
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer refusing.Close()
	if a, err := answer.Fetch(t.Context(), refusing.URL, study.Target{Path: "/"}); err != nil || a.Status != http.StatusBadRequest {
		t.Errorf("a service that refuses: got status %d, %v", a.Status, err)
	}
	if answer.TLS("https://192.0.2.1:8443") != nil || answer.TLS("https://localhost.example:8443") != nil {
		t.Error("another host's certificate is not verified")
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
		if err := answer.Check(v, answer.Answer{Status: http.StatusOK, Header: tt.header}); err == nil || err.Error() != tt.want {
			t.Errorf("%v: got %v, want %s", tt.header, err, tt.want)
		}
	}
}

func TestDifference(t *testing.T) {
	text := func(kind, body string) answer.Answer {
		return answer.New(&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}}, []byte(body))
	}
	other := func(a answer.Answer, change func(*answer.Answer)) answer.Answer {
		change(&a)
		return a
	}
	hello := text("text/plain", "hello, all")
	for _, tt := range []struct {
		name string
		a    answer.Answer
		want string
	}{
		{"same", hello, ""},
		{"status", other(hello, func(a *answer.Answer) { a.Status = 404 }), "status 404, not 200"},
		{"kind", text("text/html", "hello, all"), `Content-Type "text/html", not "text/plain"`},
		{"one byte", text("text/plain", "hello, All"), `10 bytes: from byte 8 on "All", not "all"`},
		{"shorter", text("text/plain", "hello"), `5 bytes, not 10: from byte 6 on "", not ", all"`},
		{"long", text("text/plain", strings.Repeat("x", 99)), `99 bytes, not 10: from byte 1 on "` + strings.Repeat("x", 40) + `"…, not "hello, all"`},
		{"behind what is kept", other(hello, func(a *answer.Answer) { a.SHA256 = "00" }), "10 bytes"},
	} {
		if got := tt.a.Difference(hello); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
