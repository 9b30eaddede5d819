package http1_test

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

func TestParse(t *testing.T) {
	const in = "POST /a?b=c HTTP/1.1\r\nHost: example.com:80\r\nuser-agent:  x\t\r\nX-Odd: 1\r\nx-odd: 2\r\nCookie: a\r\ncookie: b\r\n" +
		"Connection: Upgrade, close\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\n"
	if n := http1.End([]byte(in+"more"), 0); n != len(in) {
		t.Fatalf("End = %d, want %d", n, len(in))
	}
	var p http1.Head
	h := http.Header{}
	if err := p.Parse(in, h, nil, &http1.Options{}); err != nil {
		t.Fatal(err)
	}
	want := http1.Head{
		Method: "POST", Target: "/a?b=c", Proto: "HTTP/1.1", Minor: 1, Host: "example.com:80",
		Length: 12, HasLength: true, Close: true, Upgrade: true, Expect: http1.Continue,
	}
	if p != want {
		t.Errorf("head %+v, want %+v", p, want)
	}
	wantFields := http.Header{
		"User-Agent": {"x"}, "X-Odd": {"1", "2"}, "Cookie": {"a", "b"}, "Connection": {"Upgrade, close"},
		"Expect": {"100-continue"}, "Content-Length": {"12"},
	}
	if !reflect.DeepEqual(h, wantFields) {
		t.Errorf("fields %v, want %v", h, wantFields)
	}
	var u url.URL
	if err := http1.URL(&u, p.Method, p.Target); err != nil || u.Path != "/a" || u.RawQuery != "b=c" {
		t.Errorf("URL = %+v, %v", u, err)
	}
}

// TestLaterMinor reads a minor version above 1 as 1.1.
func TestLaterMinor(t *testing.T) {
	p, _ := parse(t, "GET / HTTP/1.2\r\nHost: a\r\n\r\n", &http1.Options{})
	if p.Proto != "HTTP/1.1" || p.Minor != 1 {
		t.Errorf("%s, minor %d, want HTTP/1.1", p.Proto, p.Minor)
	}
}
