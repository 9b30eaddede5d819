package servetest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
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
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) })
	unstarted := func(start func(*servetest.Server)) func() *servetest.Server {
		return func() *servetest.Server {
			s := servetest.NewUnstartedServer(h)
			start(s)
			return s
		}
	}
	for _, tc := range []struct {
		name          string
		start         func() *servetest.Server
		scheme, proto string
	}{
		{"NewServer", func() *servetest.Server { return servetest.NewServer(h) }, "http://", "HTTP/1.1"},
		{"NewTLSServer", func() *servetest.Server { return servetest.NewTLSServer(h) }, "https://", "HTTP/1.1"},
		{"Start", unstarted((*servetest.Server).Start), "http://", "HTTP/1.1"},
		{"StartTLS", unstarted((*servetest.Server).StartTLS), "https://", "HTTP/1.1"},
		{"HTTP/2", unstarted(func(s *servetest.Server) { s.EnableHTTP2 = true; s.StartTLS() }), "https://", "HTTP/2.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.start()
			defer s.Close()
			if !strings.HasPrefix(s.URL, tc.scheme) {
				t.Errorf("URL %q, want it to begin with %q", s.URL, tc.scheme)
			}
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
