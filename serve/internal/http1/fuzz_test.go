package http1_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// FuzzStream holds what ours makes of a stream of requests against what
// net/http's server makes of it: verdicts and everything that a handler sees.
// A difference must be of a class that testdata/differences.tsv justifies.
func FuzzStream(f *testing.F) {
	for _, a := range attacks(f) {
		f.Add(a.in, uint8(1))
	}
	f.Add([]byte("CONNECT  HTTP/1.0\r\n\r\n"), uint8(7))
	f.Add([]byte("POST / HTTP/1.1\r\nHost:\r\n\r\n\n0 * HTTP/1.0\n0000:\n\n"), uint8(0))
	f.Add([]byte("POST / HTTP/1.1\r\nHost:\r\n\r\n\r\r\n\rGET / HTTP/1.0\r\n\r\n"), uint8(0))
	f.Add([]byte("POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\nGET / HTTP/1.0\r\n\r\n"), uint8(0))
	// A bare LF has the head refused before it ends, and an earlier fault is named.
	f.Add([]byte("0 / HTTP/1.0\r\n0000  :0\n"), uint8(0))
	// Leaves room for one byte in net/http's buffer.
	f.Add([]byte("POST / HTTP/1.1\r\nHost:\r\nContent-Length: 5\r\n\r\nhello"+strings.Repeat("0", 4095)), uint8(0))
	c := newControl(f)
	f.Fuzz(func(t *testing.T, in []byte, step uint8) { compare(t, c, in, int(step)) })
}

// compare reads a stream with ours, whole and step bytes at a time, and with
// net/http's.
func compare(t *testing.T, c *control, in []byte, step int) {
	whole := drive(in, len(in), strict)
	parts := drive(in, step, strict)
	if whole.verdict != parts.verdict || whole.reason != parts.reason || !slices.EqualFunc(whole.requests, parts.requests, same) {
		t.Fatalf("whole %+v, %d bytes at a time %+v, of\n\t%s", whole, step, parts, quote(in))
	}
	theirs := c.read(in)
	for _, d := range differ(in, whole, theirs) {
		if classify(d) == "" {
			t.Fatalf("an unlisted difference (%s): ours %+v, net/http %+v, of\n\t%s", d.sign, whole, theirs, quote(in))
		}
	}
}

// pieces are what FuzzPieces makes streams of.
var pieces = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"PUT / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n",
	"POST / HTTP/1.1\r\nHost:\r\nContent-Length: 5\r\n\r\n",
	"GET", "POST", "CONNECT", "OPTIONS", "PRI", "0", " ", "/", "*", "/a?b=%20#c", "http://u@a:1/", "a:80", "%", "%2",
	" HTTP/1.1\r\n", " HTTP/1.0\r\n", " HTTP/1.2\r\n", " HTTP/2.0\r\n", "HTTP/",
	"Host: a\r\n", "Host: [::1]:80\r\n", "Host:", "Content-Length:", "Content-Length: 1\r\n",
	"Transfer-Encoding:", "Transfer-Encoding: chunked\r\n", "chunked", "gzip", "Connection: ", "close", "keep-alive", "upgrade",
	"Expect: 100-continue\r\n", "Upgrade: x\r\n", "Trailer: A\r\n", "A: b\r\n", "A", ":", ",", "\t", "\r\n", "\r\n\r\n", "\r", "\n",
	"0\r\n", "0\r\n\r\n", "1\r\nx\r\n", "5;e=f\r\nhello\r\n", "5", "a", "fF", ";", ";a=\"x\"", "=", "\"", "\\", "x", "\x00", "\x7f", "\x80",
	"0000000000000001", "00000000000000001", "3fffffffffffffff", "5555555555555555", "7fffffffffffffff", "ffffffffffffffff",
}

// FuzzPieces compares the two on streams made of whole words of the language,
// which come farther than bytes do: two bytes of spec name a piece and the power
// of two by which it is repeated.
func FuzzPieces(f *testing.F) {
	for i := range pieces {
		f.Add([]byte{byte(i), 0}, uint8(1))
		f.Add([]byte{1, 0, byte(i), 0, 47, 0}, uint8(0))
		f.Add([]byte{1, 0, 47, 0, byte(i), 252}, uint8(200))
	}
	c := newControl(f)
	f.Fuzz(func(t *testing.T, spec []byte, step uint8) {
		var in []byte
		for pair := range slices.Chunk(spec, 2) {
			if len(pair) < 2 || len(in) > 64<<10 {
				break
			}
			in = append(in, strings.Repeat(pieces[int(pair[0])%len(pieces)], 1<<(max(pair[1], 243)-243))...)
		}
		compare(t, c, in, int(step))
	})
}

// FuzzLenient makes sure that leniency refuses nothing that strictness reads,
// and reads that no differently.
func FuzzLenient(f *testing.F) {
	for _, a := range attacks(f) {
		f.Add(a.in)
	}
	lax := http1.Lenient{
		BareLF: true, Fold: true, SameLengths: true, LengthAndChunked: true, OldChunked: true,
		OtherHost: true, RawTarget: true, UserInfo: true, ConnectPath: true,
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a, b := drive(in, len(in), strict), drive(in, len(in), lax)
		if a.verdict == reject {
			if len(b.requests) < len(a.requests) {
				t.Fatalf("strict %+v, lenient %+v", a, b)
			}
			return
		}
		if a.verdict != b.verdict || !slices.EqualFunc(a.requests, b.requests, same) {
			t.Fatalf("strict %+v, lenient %+v", a, b)
		}
	})
}
