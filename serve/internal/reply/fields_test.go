package reply_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tarehq/tare/serve/internal/reply"
)

// TestLines has fields written as the plain way writes them, the first time and later, by
// several goroutines.
func TestLines(t *testing.T) {
	fields := [][]string{
		{"Content-Type", "text/html"}, {"Content-Type", "text/plain"}, {"Content-Type", "text/html"}, {"Content-Type"},
		{"Vary", "a", "b"}, {"Vary", "a"}, {"No name", "x"}, {"", "x"}, {"X", ""}, {"X", " \t padded\r\n"}, {"X-Break", "a\r\nSet-Cookie: b"},
		{"Long", strings.Repeat("x", 1000)}, {"Z"}, {"Z", "z"}, {"z", "z"}, {"Zz", "z"}, {"Zzz", "z"},
	}
	var l reply.Lines
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				f := fields[rand.IntN(len(fields))]
				if got, want := l.Append([]byte("head\r\n"), f[0], f[1:]), reply.AppendField([]byte("head\r\n"), f[0], f[1:]); string(got) != string(want) {
					t.Errorf("%q: got %q, want %q", f, got, want)
				}
			}
		})
	}
	all.Wait()
}

// TestLinesAreBounded has values that change be no reason to remember more.
func TestLinesAreBounded(t *testing.T) {
	var l reply.Lines
	b, values := make([]byte, 0, 1024), make([]string, 1)
	texts := make([]string, 200)
	for i := range texts {
		texts[i] = fmt.Sprint("value ", i)
	}
	i := 0
	if n := testing.AllocsPerRun(100, func() {
		values[0] = texts[i]
		i++
		l.Append(b, "X-Request-Id", values)
	}); n > 0 {
		t.Errorf("%v allocations for each value", n)
	}
}

// TestSorted has few fields and many, of which some begin alike.
func TestSorted(t *testing.T) {
	var to []reply.Field
	for n := range 40 {
		h := http.Header{}
		for range n {
			h[strings.Repeat("X-", rand.IntN(6))+string(rune('a'+rand.IntN(26)))] = []string{"v"}
		}
		to = reply.Sorted(to, h)
		var got []string
		for _, f := range to {
			got = append(got, f.Name)
			if !slices.Equal(f.Values, h[f.Name]) {
				t.Errorf("%s: got the values %q, want %q", f.Name, f.Values, h[f.Name])
			}
		}
		if want := slices.Sorted(maps.Keys(h)); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestSortedUsual orders what answers have most, alone and beside others.
func TestSortedUsual(t *testing.T) {
	names := []string{"Content-Length", "Content-Type", "Date", "Allow"}
	for set := range 1 << len(names) {
		h := http.Header{}
		for i, name := range names {
			if set>>i&1 == 1 {
				h[name] = []string{name + "'s value"}
			}
		}
		want := slices.Sorted(maps.Keys(h))
		got := reply.Sorted(nil, h)
		if len(got) != len(want) {
			t.Fatalf("got %v, want the fields %q", got, want)
		}
		for i, f := range got {
			if f.Name != want[i] || len(f.Values) != 1 || f.Values[0] != want[i]+"'s value" {
				t.Errorf("of %q the %dth is %q: %q", want, i, f.Name, f.Values)
			}
		}
	}
}

// BenchmarkFewFields orders one and two fields: usual ones, and others, of which the map has
// to be gone through.
func BenchmarkFewFields(b *testing.B) {
	for _, names := range [][]string{{"Content-Type"}, {"Content-Length", "Content-Type"}, {"Location"}, {"Cache-Control", "Location"}} {
		b.Run("names="+strings.Join(names, ","), func(b *testing.B) {
			h := http.Header{}
			for _, name := range names {
				h[name] = []string{"v"}
			}
			var to []reply.Field
			for b.Loop() {
				to = reply.Sorted(to, h)
			}
		})
	}
}

// known are names that are usual in answers.
var known = []string{"Accept-Ranges", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers", "Access-Control-Allow-Methods",
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Access-Control-Max-Age", "Age", "Allow", "Alt-Svc", "Cache-Control",
	"Connection", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length", "Content-Location", "Content-Range",
	"Content-Security-Policy", "Content-Type", "Cross-Origin-Embedder-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy",
	"Etag", "Expires", "Keep-Alive", "Last-Modified", "Link", "Location", "Origin-Agent-Cluster", "Permissions-Policy", "Pragma",
	"Ratelimit", "Ratelimit-Policy", "Referrer-Policy", "Retry-After", "Server", "Server-Timing", "Set-Cookie", "Strict-Transport-Security",
	"Timing-Allow-Origin", "Trailer", "Transfer-Encoding", "Upgrade", "Vary", "Via", "Www-Authenticate", "X-Content-Type-Options",
	"X-Dns-Prefetch-Control", "X-Download-Options", "X-Frame-Options", "X-Permitted-Cross-Domain-Policies", "X-Powered-By", "X-Request-Id",
	"X-Robots-Tag", "X-Xss-Protection"}

// TestSlots has no two usual names share a slot, as then one would not be remembered.
func TestSlots(t *testing.T) {
	names := map[uint8]string{}
	for _, name := range known {
		if other, ok := names[reply.Slot(name)]; ok {
			t.Errorf("%s and %s share a slot", name, other)
		}
		names[reply.Slot(name)] = name
	}
}

// BenchmarkHead writes the fields that guards add to an answer.
func BenchmarkHead(b *testing.B) {
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}, "X-Frame-Options": {"DENY"},
		"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
		"Referrer-Policy":         {"no-referrer"}, "Cross-Origin-Resource-Policy": {"same-origin"}, "Cross-Origin-Opener-Policy": {"same-origin"},
		"X-Request-Id": {"0"}}
	ids := []string{"0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"}
	b.Run("kind=plain", func(b *testing.B) {
		var names []string
		out := make([]byte, 0, 1024)
		for i := 0; b.Loop(); i++ {
			h["X-Request-Id"][0] = ids[i%2]
			names, out = names[:0], out[:0]
			for name := range h {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				out = reply.AppendField(out, name, h[name])
			}
		}
	})
	b.Run("kind=lines", func(b *testing.B) {
		var l reply.Lines
		var fields []reply.Field
		out := make([]byte, 0, 1024)
		for i := 0; b.Loop(); i++ {
			h["X-Request-Id"][0] = ids[i%2]
			out = out[:0]
			fields = reply.Sorted(fields, h)
			for _, f := range fields {
				out = l.Append(out, f.Name, f.Values)
			}
		}
	})
}
