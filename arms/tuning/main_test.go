package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestFacts(t *testing.T) {
	tests := map[string]map[string]string{
		"default": {
			"http.Server.ReadTimeout": "0s (none)", "http.Server.WriteTimeout": "0s (none)",
			"http.Server.IdleTimeout": "0s (none)", "http.Server.ReadHeaderTimeout": "0s (none)",
			"http.Server.MaxHeaderBytes": "1048576",
		},
		"tuned": {
			"http.Server.ReadTimeout": "5s", "http.Server.WriteTimeout": "10s",
			"http.Server.IdleTimeout": "30s", "http.Server.ReadHeaderTimeout": "0s (none)",
			"http.Server.MaxHeaderBytes": "1048576",
		},
		"advised": {
			"http.Server.ReadTimeout": "5s", "http.Server.WriteTimeout": "10s",
			"http.Server.IdleTimeout": "30s", "http.Server.ReadHeaderTimeout": "2s",
			"http.Server.MaxHeaderBytes": "1048576",
		},
	}
	for kind, want := range tests {
		s, err := server(kind, "localhost:0", http.NewServeMux())
		if err != nil {
			t.Fatal(err)
		}
		if got := facts(s); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", kind, got, want)
		}
	}
	if _, err := server("fast", "", nil); err == nil {
		t.Error(`server "fast": got no error`)
	}
}

// The five published lines are all that is set.
func TestTunedSetsFiveFields(t *testing.T) {
	s, err := server("tuned", "localhost:0", http.NewServeMux())
	if err != nil {
		t.Fatal(err)
	}
	var set []string
	for f, v := range reflect.ValueOf(s).Elem().Fields() {
		if f.IsExported() && !v.IsZero() {
			set = append(set, f.Name)
		}
	}
	if want := []string{"Addr", "Handler", "ReadTimeout", "WriteTimeout", "IdleTimeout"}; !slices.Equal(set, want) {
		t.Errorf("set are %v, want %v", set, want)
	}
}

// The header limit is a fact about what the server does, so it is tried.
func TestHeaderLimitIsInForce(t *testing.T) {
	mux := http.NewServeMux()
	register(mux)
	s, err := server("default", "", mux)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	for size, want := range map[int]int{http.DefaultMaxHeaderBytes - 4096: 200, http.DefaultMaxHeaderBytes + 8192: 431} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go fmt.Fprintf(c, "GET /ping HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", strings.Repeat("x", size))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want {
			t.Errorf("header field of %d bytes: got %d, want %d", size, res.StatusCode, want)
		}
		c.Close()
	}
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		target string
		status int
		body   string
	}{
		{"/ping", 200, `{"message":"pong"}`},
		{"/sleep?ms=0", 200, "0s"},
		{"/sleep?ms=2", 200, "2ms"},
		{"/sleep", 400, "ms: want a whole number from 0 to 60000\n"},
		{"/sleep?ms=60001", 400, "ms: want a whole number from 0 to 60000\n"},
		{"/sleep?ms=-1", 400, "ms: want a whole number from 0 to 60000\n"},
	}
	h := http.NewServeMux()
	register(h)
	for _, tt := range tests {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", tt.target, nil))
		if body, _ := io.ReadAll(w.Body); w.Code != tt.status || string(body) != tt.body {
			t.Errorf("GET %s: got %d %q, want %d %q", tt.target, w.Code, body, tt.status, tt.body)
		}
	}
}

// With threads each connection has one of its own.
func TestConnectionsHaveThreads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: threads are counted in /proc")
	}
	const conns = 50
	threads := func() int {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	for kind, want := range map[string]bool{"default": false, "threads": true} {
		mux := http.NewServeMux()
		register(mux)
		s, err := server(kind, "", mux)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go s.Serve(l)
		defer s.Close()
		before := threads()
		for range conns {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprint(c, "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n")
			if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
				t.Fatal(err)
			}
		}
		if gained := threads() - before; (gained >= conns*9/10) != want {
			t.Errorf("%s: %d connections gained %d threads, want one each: %t", kind, conns, gained, want)
		}
	}
}
