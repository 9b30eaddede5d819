package http1_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// reference is what net/http makes of a request target.
func reference(method, target string) (*url.URL, error) {
	if method == "CONNECT" && !strings.HasPrefix(target, "/") {
		u, err := url.ParseRequestURI("http://" + target)
		if err == nil {
			u.Scheme = ""
		}
		return u, err
	}
	return url.ParseRequestURI(target)
}

var targets = []string{
	"", "*", "/", "//", "//a/b", "///", "/a/b.html", "/a%20b", "/a%2Fb", "/%zz", "/%", "/a?b=c", "/?", "/a?", "/a??", "/a?b?c",
	"/a?b=%zz", "/a!b", "/a'b", "/(a)*", "/a[b]", "/a{b}", "/a|b", "/a\"b", "//a%20b", "/a#b", "/a?b#c", "/a;b,c", "/a:b@c", "/a+b=c&d$e~f_g-h.i",
	"/ä", "/a?ä", "/\x7f", "/a?\x7f", "/a\n", "/a?\x01", "/a b", "/a?b c", "http://a", "http://a/", "http://a:80/b?c", "http://u:p@a/b",
	"http://[::1]:80/", "http://[::1/", "http:///", "http://a:b/", "HTTP://A/", "a:80", "a", "?", "mailto:a@b", "urn:a:b", "https://a?b", "[::1]:443", "a:", ":80",
}

func compareURL(t *testing.T, method, target string) {
	t.Helper()
	var u url.URL
	err := http1.URL(&u, method, target)
	want, wantErr := reference(method, target)
	switch {
	case (err != nil) != (wantErr != nil):
		t.Errorf("URL(%s, %q): error %v, want %v", method, target, err, wantErr)
	case err == nil && (u.User.String() != want.User.String()):
		t.Errorf("URL(%s, %q): user %v, want %v", method, target, u.User, want.User)
	case err == nil:
		u.User, want.User = nil, nil
		if u != *want {
			t.Errorf("URL(%s, %q) = %+v, want %+v", method, target, u, *want)
		}
	}
}

func TestURL(t *testing.T) {
	for _, target := range targets {
		compareURL(t, "GET", target)
		compareURL(t, "CONNECT", target)
	}
}

// TestConnectPath: the switch lets paths and hosts through, and nothing else.
func TestConnectPath(t *testing.T) {
	o := http1.Options{Lenient: http1.Lenient{ConnectPath: true}}
	for target, want := range map[string]int{"/a": 0, "a": 0, "a:80": 0, "a|b": 400, "[a": 400} {
		var p http1.Head
		if got := statusOf(p.Parse("CONNECT "+target+" HTTP/1.0\r\n\r\n", http.Header{}, nil, &o)); got != want {
			t.Errorf("CONNECT %s: status %d, want %d", target, got, want)
		}
	}
}

func TestURLAllocates(t *testing.T) {
	var u url.URL
	for _, target := range []string{"/", "/a/b.html", "/search?q=%20&r={s}", "/a?"} {
		allocs := testing.AllocsPerRun(10, func() {
			if err := http1.URL(&u, "GET", target); err != nil {
				t.Error(err)
			}
		})
		if allocs != 0 {
			t.Errorf("URL(%q): %v allocations, want 0", target, allocs)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, target := range targets {
		f.Add("GET", target)
	}
	f.Add("CONNECT", "a:443")
	f.Fuzz(func(t *testing.T, method, target string) { compareURL(t, method, target) })
}
