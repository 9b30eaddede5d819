package load_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/tarehq/tare/load"
)

func TestVerify(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Two: a\r\nx-two:b \r\n\r\n"
	const body = "aaab hello, world"
	length := func(n int64) *int64 { return &n }
	digest := func(s string) string { d := sha256.Sum256([]byte(s)); return hex.EncodeToString(d[:]) }
	field := func(n, v string) []load.Field { return []load.Field{{Name: n, Value: v}} }
	tests := []struct {
		give load.Verify
		want bool
	}{
		{load.Verify{}, true},
		{load.Verify{Status: 200}, true},
		{load.Verify{Status: 201}, false},
		{load.Verify{Header: field("content-type", "text/plain")}, true},
		{load.Verify{Header: field("Content-Type", "text/html")}, false},
		{load.Verify{Header: field("X-Two", "b")}, true},
		{load.Verify{Header: field("X-Three", "b")}, false},
		{load.Verify{Contains: "aab h"}, true},
		{load.Verify{Contains: "d"}, true},
		{load.Verify{Contains: body}, true},
		{load.Verify{Contains: "worlds"}, false},
		{load.Verify{Contains: strings.Repeat("x", 100)}, false},
		{load.Verify{Length: length(17)}, true},
		{load.Verify{Length: length(0)}, false},
		{load.Verify{SHA256: digest(body)}, true},
		{load.Verify{SHA256: strings.ToUpper(digest(body))}, true},
		{load.Verify{SHA256: digest("other")}, false},
		{load.Verify{Status: 200, Contains: "hello", Length: length(17), SHA256: digest(body)}, true},
		{load.Verify{Status: 200, Contains: "hello", Length: length(16), SHA256: digest(body)}, false},
	}
	for _, tt := range tests {
		for step := 1; step <= len(body); step++ {
			got, err := load.Verified(tt.give, 200, head, body, step)
			if got != tt.want || err != nil {
				t.Errorf("verify %+v in steps of %d: got %v, %v; want %v", tt.give, step, got, err, tt.want)
			}
		}
	}
}

func TestVerifyErrors(t *testing.T) {
	n := int64(-1)
	for want, o := range map[string]load.Options{
		"status 99":    one(load.Target{URL: "http://h/", Verify: load.Verify{Status: 99}}),
		"length -1":    one(load.Target{URL: "http://h/", Verify: load.Verify{Length: &n}}),
		"SHA-256 \"x":  one(load.Target{URL: "http://h/", Verify: load.Verify{SHA256: "x"}}),
		"header \"a b": one(load.Target{URL: "http://h/", Verify: load.Verify{Header: []load.Field{{Name: "a b"}}}}),
		"HEAD":         one(load.Target{URL: "http://h/", Method: "HEAD", Verify: load.Verify{Contains: "x"}}),
	} {
		if _, _, err := load.Encoded(o, 0, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("verify %+v: got error %v, want one with %q", o.Targets[0].Verify, err, want)
		}
	}
}
