//go:build linux

package serve_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestAnswersOfStandards wants answers that the standards demand where http.Server gives
// others. A connection that is to end has to, without the test's closing it.
func TestAnswersOfStandards(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if link := r.URL.Query().Get("link"); link != "" {
			w.Header().Set("Link", link)
			w.WriteHeader(http.StatusEarlyHints)
		}
		if options := r.URL.Query()["connection"]; options != nil {
			w.Header()["Connection"] = options
		}
		io.WriteString(w, "ok")
	})
	_, addr := serveRaw(t, &serve.Server{Handler: h})
	for _, tc := range []struct {
		name, send string
		ends       bool
		has, not   string
	}{
		{"1.0 and keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false, "Connection: keep-alive\r\n", "\x00"},
		{"1.0, close behind keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", true, "ok", "keep-alive"},
		{"1.0, close before keep-alive", "GET / HTTP/1.0\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n", true, "ok", "keep-alive"},
		{"1.1, the handler closes", get("/?connection=close"), true, "Connection: close\r\n", "\x00"},
		{"1.1, the handler closes in capitals", get("/?connection=CLOSE"), true, "Connection: CLOSE\r\n", "\x00"},
		{"1.1, the handler closes in a list", get("/?connection=x,+close"), true, "Connection: x, close\r\n", "\x00"},
		{"1.1, the handler closes in a second field", get("/?connection=x&connection=close"), true, "Connection: close\r\n", "\x00"},
		{"1.1, the handler names another option", get("/?connection=closed"), false, "Connection: closed\r\n", "\x00"},
		{"1.1, informed", get("/?link=a"), false, "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n", "\x00"},
		{"HEAD, refused without content", "HEAD / HTTP/1.1\r\n\r\n", true, "HTTP/1.1 400 Bad Request\r\n", "missing Host"},
		{"a refusal has a date", "GET / HTTP/1.1\r\n\r\n", true, "\r\nConnection: close\r\nDate: ", "\x00"},
		{"1.0, not informed", "GET /?link=a HTTP/1.0\r\n\r\n", true, "HTTP/1.0 200 OK\r\nLink: a\r\n", " 103 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nc := call(t, addr)
			io.WriteString(nc, tc.send)
			nc.SetReadDeadline(time.Now().Add(10 * time.Second))
			br := bufio.NewReader(nc)
			br.Peek(1) // a busy machine takes its time to answer
			if !tc.ends {
				nc.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			}
			got, err := io.ReadAll(br)
			if ends := !errors.Is(err, os.ErrDeadlineExceeded); ends != tc.ends {
				t.Errorf("the connection ends: %t (%v), want %t", ends, err, tc.ends)
			}
			if !strings.Contains(string(got), tc.has) || strings.Contains(string(got), tc.not) {
				t.Errorf("got %q, want it with %q and without %q", got, tc.has, tc.not)
			}
		})
	}
}

func get(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n" }

// serveRaw serves until the test ends.
func serveRaw(t *testing.T, s *serve.Server) (served <-chan error, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served = goServe(s, l)
	t.Cleanup(func() { s.Close() })
	return served, l.Addr().String()
}
