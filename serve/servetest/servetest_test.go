package servetest_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/tarehq/tare/serve/servetest"
)

func Example() {
	s := servetest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.URL.Query().Get("name"))
	}))
	defer s.Close()
	res, err := s.Client().Get(s.URL + "/?name=gopher")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	fmt.Println(string(body), err)
	// Output: hello gopher <nil>
}

func TestProtocols(t *testing.T) {
	for _, tc := range []struct {
		name  string
		start func(*servetest.Server)
		proto string
	}{
		{"plain", (*servetest.Server).Start, "HTTP/1.1"},
		{"tls", (*servetest.Server).StartTLS, "HTTP/1.1"},
		{"http2", func(s *servetest.Server) { s.EnableHTTP2 = true; s.StartTLS() }, "HTTP/2.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := servetest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, r.Proto)
			}))
			tc.start(s)
			defer s.Close()
			res, err := s.Client().Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil || string(body) != tc.proto {
				t.Errorf("body %q, error %v, want %q", body, err, tc.proto)
			}
		})
	}
}

func TestCloseClientConnections(t *testing.T) {
	entered := make(chan struct{})
	s := servetest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}))
	defer s.Close()
	failed := make(chan error)
	go func() {
		res, err := s.Client().Get(s.URL)
		if err == nil {
			res.Body.Close()
		}
		failed <- err
	}()
	<-entered
	s.CloseClientConnections()
	if err := <-failed; err == nil {
		t.Error("the request was answered, want an error: its connection was closed")
	}
}
