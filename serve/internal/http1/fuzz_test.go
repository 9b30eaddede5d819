package http1_test

import (
	"slices"
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
	c := newControl(f)
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		whole := drive(in, len(in), strict)
		parts := drive(in, int(step), strict)
		if whole.verdict != parts.verdict || whole.reason != parts.reason || !slices.EqualFunc(whole.requests, parts.requests, same) {
			t.Fatalf("whole %+v, %d bytes at a time %+v", whole, step, parts)
		}
		theirs := c.read(in)
		for _, d := range differ(in, whole, theirs) {
			if classify(d) == "" {
				t.Fatalf("an unlisted difference (%s): ours %+v, net/http %+v", d.sign, whole, theirs)
			}
		}
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
