package http1_test

import (
	"net/http"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// TestCheckRequest gives requests as net/http's HTTP/2 makes them of pseudo-header fields.
func TestCheckRequest(t *testing.T) {
	none := http1.Lenient{}
	tests := []struct {
		name, method, target, host string
		header                     http.Header
		lax                        http1.Lenient
		want                       int // 0: it passes
	}{
		{"plain", "GET", "/a?b=%zz", "a:80", nil, none, 0},
		{"no host", "GET", "/", "", nil, none, 400},
		{"no host, lenient", "GET", "/", "", nil, http1.Lenient{EmptyHost: true}, 0},
		{"host with a space", "GET", "/", "a b", nil, none, 400},
		{"host with a path", "GET", "/", "a/b", nil, none, 400},
		{"another Host", "GET", "/", "a", http.Header{"Host": {"b"}}, none, 400},
		{"another Host, lenient", "GET", "/", "a", http.Header{"Host": {"b"}}, http1.Lenient{OtherHost: true}, 0},
		{"the same Host", "GET", "/", "a", http.Header{"Host": {"A"}}, none, 0},
		{"asterisk", "OPTIONS", "*", "a", nil, none, 0},
		{"asterisk of GET", "GET", "*", "a", nil, none, 400},
		{"URL", "GET", "http://b/", "a", nil, none, 400},
		{"no path", "GET", "", "a", nil, none, 400},
		{"fragment", "GET", "/a#b", "a", nil, none, 400},
		{"beyond ASCII", "GET", "/\xff", "a", nil, none, 400},
		{"both, lenient", "GET", "/\xff#", "a", nil, http1.Lenient{RawTarget: true}, 0},
		{"space", "GET", "/a b", "a", nil, http1.Lenient{RawTarget: true}, 400},
		{"control character", "GET", "/a\rb", "a", nil, http1.Lenient{RawTarget: true}, 400},
		{"CONNECT", "CONNECT", "a:443", "a:443", nil, none, 501},
		{"CONNECT, lenient", "CONNECT", "a:443", "a:443", nil, http1.Lenient{Connect: true}, 0},
		{"CONNECT without a port", "CONNECT", "a", "a", nil, http1.Lenient{Connect: true}, 400},
		{"extended CONNECT", "CONNECT", "/chat", "a", http.Header{":protocol": {"websocket"}}, none, 0},
		{"fields", "GET", "/", "a", http.Header{"A": make([]string, 100)}, none, 431},
	}
	for _, test := range tests {
		r := &http.Request{Method: test.method, RequestURI: test.target, Host: test.host, Header: test.header}
		err, got := http1.CheckRequest(r, &http1.Options{Lenient: test.lax}), 0
		if err != nil {
			got = err.Status
		}
		if got != test.want {
			t.Errorf("%s: %d (%v), want %d", test.name, got, err, test.want)
		}
	}
}
