package clienttest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/client"
	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/client/clienttest"
)

// recorder is a test that a test looks at.
type recorder struct {
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// TestCheckBodies finds what each way to end an answer leaves behind.
func TestCheckBodies(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/empty" {
			fmt.Fprint(w, strings.Repeat("x", 10000))
		}
	}))
	defer s.Close()
	read := func(b io.ReadCloser) { _, _ = io.Copy(io.Discard, b) }
	for _, c := range []struct {
		path string
		end  func(io.ReadCloser)
		want string // in the failure; empty: none
	}{
		{"/read", func(b io.ReadCloser) { read(b); b.Close() }, ""},
		{"/empty", func(io.ReadCloser) {}, ""},
		{"/open", read, "its answer's body was not closed"},
		{"/unread", func(b io.ReadCloser) { b.Close(); b.Close() }, "its answer's body was closed before its end"},
	} {
		rec := new(recorder)
		tr := http.DefaultTransport.(*http.Transport).Clone()
		guarded, err := breaker.NewTransport(breaker.Options{}, clienttest.CheckBodies(rec, tr))
		if err != nil {
			t.Fatal(err)
		}
		retrying, err := client.New(client.Options{Next: guarded})
		if err != nil {
			t.Fatal(err)
		}
		cl := &http.Client{Transport: retrying}
		res, err := cl.Get(s.URL + c.path)
		if err != nil {
			t.Fatal(err)
		}
		c.end(res.Body)
		for _, f := range rec.cleanups {
			f()
		}
		res.Body.Close()
		cl.CloseIdleConnections()
		got := strings.Join(rec.errors, "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || len(rec.errors) > 1 {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
		if got != "" && (!strings.Contains(got, "GET "+s.URL+c.path) || !strings.Contains(got, "clienttest_test.go:")) {
			t.Errorf("%q does not say which request and where it was sent", got)
		}
	}
}
