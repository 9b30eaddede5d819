package http1_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

func TestEnd(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"", 0}, {"\r", 0}, {"\r\n", 2}, {"\n", 1}, {"a", 0}, {"a\r\n", 0}, {"a\r\n\r", 0},
		{"a\r\n\r\n", 5}, {"a\r\n\r\nb\r\n\r\n", 5}, {"a\n\n", 3}, {"a\n\r\n", 4}, {"a\r\n\n", 4},
		{"a\r\n\rb\r\n\r\n", 9}, {"a\r\nb\r\n\r\n", 8}, {"a\r\r\n\r\n", 6}, {"\r\na\r\n\r\n", 2},
		{"a\r\n\r\r\n\r\n", 8},
	}
	for _, test := range tests {
		in := []byte(test.in)
		if got := http1.End(in, 0); got != test.want {
			t.Errorf("End(%q, 0) = %d, want %d", in, got, test.want)
		}
		// As the bytes come, from wherever an earlier call left off.
		for n := range len(in) + 1 {
			if http1.End(in[:n], 0) > 0 {
				break
			}
			if got := http1.End(in, n); got != test.want {
				t.Errorf("End(%q, %d) = %d, want %d", in, n, got, test.want)
			}
		}
	}
}

func TestSkip(t *testing.T) {
	tests := map[string]int{
		"": 0, "GET": 0, "\r": 0, "\n": 0, "\r\n": 2, "\r\nG": 2, "\r\n\r\n": 4, "\r\n\r\nG": 4,
		"\r\n\r\n\r\n": 4, "\r\n\r": 2, "\n\n": 0, "\r\r\n": 0,
	}
	for in, want := range tests {
		if got := http1.Skip([]byte(in)); got != want {
			t.Errorf("Skip(%q) = %d, want %d", in, got, want)
		}
	}
}

// TestEarly judges heads that have not ended, whole and as they come.
func TestEarly(t *testing.T) {
	lf := http1.Lenient{BareLF: true}
	for _, test := range []struct {
		in      string
		lenient http1.Lenient
		status  int // 0: it may yet be a request
	}{
		{"GET / HT", strict, 0},
		{"GET / HTTP/1.1\r\nA: b\r", strict, 0},
		{"GET / HTTP/1.1\r\nA: \tb\r\n", strict, 0},
		{"GET / HTTP/1.1\r\nno field\r\n", strict, 0},
		{"GET / HTTP/1.1\r\nA: b\rC: d", strict, 400},
		{"GET / HTTP/1.1\r\nA: b\r\r\n", strict, 400},
		{"GET / HTTP/1.1\r\nA: \x00", strict, 400},
		{"GET /\x7f", strict, 400},
		{"GET / HTTP/1.1\nA", strict, 400},
		{"GET / HTTP/1.1\nA", lf, 0},
		{"GET / HTTP/1.1\nA: b\rC", lf, 400},
		{"GET /\r\n", strict, 400},
		{"GET / HTTP/3.0\r\n", strict, 505},
		{"PRI * HTTP/2.0\r\n", strict, 0},
		{"PRI * HTTP/2.0\r\nA", strict, 0},
		{"\x16\x03\x01", strict, 400},
	} {
		o := http1.Options{Lenient: test.lenient}
		var got error
		for n := 1; n <= len(test.in) && got == nil; n++ {
			got = http1.Early([]byte(test.in[:n]), n-1, &o)
		}
		whole := http1.Early([]byte(test.in), 0, &o)
		if status(got) != test.status || status(whole) != test.status {
			t.Errorf("Early(%q) = %v, byte by byte %v, want %d", test.in, whole, got, test.status)
		}
	}
}

// status returns that of a refusal, 0 if there is none.
func status(err error) int {
	if refusal := (*http1.Error)(nil); errors.As(err, &refusal) {
		return refusal.Status
	}
	return 0
}

func TestTooLong(t *testing.T) {
	for in, want := range map[string]int{
		string(bytes.Repeat([]byte("x"), 100)):                           501,
		"GET /" + string(bytes.Repeat([]byte("x"), 100)):                 414,
		"GET / HTTP/1.1\r\nX: " + string(bytes.Repeat([]byte("x"), 100)): 431,
	} {
		if got := http1.TooLong([]byte(in)); got.Status != want || got.Error() == "" {
			t.Errorf("TooLong(%q) = %d %v, want %d", in, got.Status, got, want)
		}
	}
}
