package fields_test

import (
	"maps"
	"net/http"
	"reflect"
	"testing"

	"github.com/tarehq/tare/serve/proxy/internal/fields"
)

// TestStrip has taking fields out leave what copying the others gives.
func TestStrip(t *testing.T) {
	for _, answer := range []http.Header{
		{},
		{"Content-Type": {"text/plain"}, "Content-Length": {"5"}},
		{"Connection": {"close, X-Secret", "keep-alive"}, "X-Secret": {"1"}, "Keep-Alive": {"timeout=5"}, "X-Open": {"2", "3"}},
		{"Upgrade": {"h2c"}, "Trailer": {"X-Sum"}, "Transfer-Encoding": {"chunked"}, "Proxy-Authenticate": {"Basic"}, "Set-Cookie": {"a", "b"}},
	} {
		want := http.Header{}
		fields.CopyAnswer(want, answer)
		got := maps.Clone(answer)
		fields.Strip(got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %v, want %v", answer, got, want)
		}
	}
}

// BenchmarkAnswer gives the client an answer's fields, out of a map that is used again, and in
// the client's own.
func BenchmarkAnswer(b *testing.B) {
	values := [][2]string{{"Content-Type", "text/plain"}, {"Content-Length", "1024"}, {"Date", "Fri, 27 Nov 2026 09:45:00 GMT"}, {"Etag", `"abc"`}, {"Cache-Control", "no-cache"}}
	fill := func(h http.Header) {
		for _, v := range values {
			h[v[0]] = []string{v[1]}
		}
	}
	b.Run("by=copy", func(b *testing.B) {
		b.ReportAllocs()
		from := http.Header{}
		for b.Loop() {
			clear(from)
			fill(from)
			to := make(http.Header, len(values))
			fields.CopyAnswer(to, from)
		}
	})
	b.Run("by=strip", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			to := make(http.Header, len(values))
			fill(to)
			fields.Strip(to)
		}
	})
}
