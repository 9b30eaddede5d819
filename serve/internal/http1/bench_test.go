package http1_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// heads are requests as common clients send them.
var heads = []struct{ name, text string }{
	{"curl", "GET /hello HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n"},
	{"browser", "GET /articles/2024/09/how-to-read?utm_source=feed&page=2 HTTP/1.1\r\n" +
		"Host: www.example.com\r\nConnection: keep-alive\r\nCache-Control: max-age=0\r\n" +
		"sec-ch-ua: \"Chromium\";v=\"128\", \"Not;A=Brand\";v=\"24\", \"Google Chrome\";v=\"128\"\r\n" +
		"Upgrade-Insecure-Requests: 1\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8\r\n" +
		"Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Accept-Language: en-GB,en-US;q=0.9,en;q=0.8,de;q=0.7\r\n" +
		"Cookie: _ga=GA1.1.1234567890.1719400000; session=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0; theme=dark\r\n\r\n"},
	{"post", "POST /api/v1/orders HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: Go-http-client/1.1\r\n" +
		"Content-Length: 1024\r\nContent-Type: application/json\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n" +
		"X-Request-Id: 7b1f6f0a-57f5-4c6b-8f8e-0f6f4a7a1c2d\r\nAccept-Encoding: gzip\r\n\r\n"},
}

// BenchmarkHead reads a head from a buffer into a request's parts: measured,
// made a string, parsed, its target split. reader=reuse keeps the map and the
// values from one request to the next as serve.Server's Reuse does,
// reader=fresh makes them anew, reader=net/http is http.ReadRequest over a
// bufio.Reader that is kept.
//
// CPU time as a ratio to reader=net_http, interleaved, medians of 25 rounds
// (reuse, fresh): curl 0.19, 0.38; browser 0.18, 0.44; post 0.20, 0.40. Most of
// what is left of reuse is the map's.
func BenchmarkHead(b *testing.B) {
	for _, head := range heads {
		in := []byte(head.text)
		b.Run("reader=reuse/request="+head.name, func(b *testing.B) { benchReuse(b, in) })
		b.Run("reader=fresh/request="+head.name, func(b *testing.B) { benchFresh(b, in) })
		b.Run("reader=net_http/request="+head.name, func(b *testing.B) { benchNetHTTP(b, in) })
	}
}

func benchReuse(b *testing.B, in []byte) {
	b.ReportAllocs()
	h := make(http.Header, 16)
	vals := make([]string, 0, 16)
	var p http1.Head
	var u url.URL
	var o http1.Options
	text := string(in)
	for b.Loop() {
		clear(h)
		if http1.End(in, 0) != len(in) {
			b.Fatal("not a head")
		}
		if err := p.Parse(text, h, vals, &o); err != nil {
			b.Fatal(err)
		}
		if err := http1.URL(&u, p.Method, p.Target); err != nil {
			b.Fatal(err)
		}
	}
}

func benchFresh(b *testing.B, in []byte) {
	b.ReportAllocs()
	type parts struct {
		head http1.Head
		url  url.URL
		vals [12]string
	}
	var o http1.Options
	for b.Loop() {
		n := http1.End(in, 0)
		p, h := new(parts), make(http.Header)
		if err := p.head.Parse(string(in[:n]), h, p.vals[:0], &o); err != nil {
			b.Fatal(err)
		}
		if err := http1.URL(&p.url, p.head.Method, p.head.Target); err != nil {
			b.Fatal(err)
		}
	}
}

func benchNetHTTP(b *testing.B, in []byte) {
	b.ReportAllocs()
	src := bytes.NewReader(in)
	r := bufio.NewReader(src)
	for b.Loop() {
		src.Reset(in)
		r.Reset(src)
		if _, err := http.ReadRequest(r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChunks decodes 64 KiB in chunks of 4 KiB from a buffer, against
// httputil.NewChunkedReader, which copies.
func BenchmarkChunks(b *testing.B) {
	in := []byte(strings.Repeat("1000\r\n"+strings.Repeat("x", 4096)+"\r\n", 16) + "0\r\n")
	b.Run("reader=http1", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(64 << 10)
		for b.Loop() {
			var c http1.Chunks
			for used := 0; ; {
				n, _, done, err := c.Decode(in[used:])
				if err != nil {
					b.Fatal(err)
				}
				if used += n; done {
					break
				}
			}
		}
	})
	b.Run("reader=net_http", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(64 << 10)
		src := bytes.NewReader(in)
		r := bufio.NewReader(src)
		for b.Loop() {
			src.Reset(in)
			r.Reset(src)
			if _, err := io.Copy(io.Discard, httputil.NewChunkedReader(r)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
