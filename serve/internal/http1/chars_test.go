package http1_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

func TestControl(t *testing.T) {
	// Each byte at each place of a word, and after one.
	for at := range 20 {
		for c := range 256 {
			b := []byte(strings.Repeat("v", 20))
			b[at] = byte(c)
			want := 20
			if c < ' ' || c == 0x7f {
				want = at
			}
			if got := http1.Control(string(b), 0); got != want {
				t.Errorf("the first control of %q is at %d, want %d", b, got, want)
			}
			if got := http1.Control(string(b), at+1); got != 20 {
				t.Errorf("the first control of %q after %d is at %d, want none", b, at, got)
			}
		}
	}
	// High bytes beside a control must neither hide nor make one.
	for _, test := range []struct {
		in   string
		want int
	}{
		{"", 0}, {"\x80\x00\x80\x80\x80\x80\x80\x80", 1}, {"\xff\xff\xff\xff\xff\xff\xff\x1f", 7},
		{"\xff\x7f\xff\xff\xff\xff\xff\xff", 1}, {"\x9f\x9f\x9f\xa0\xff\x80\x81\x20", 8}, {"vvvvvvvv\x0b\t", 8},
	} {
		if got := http1.Control(test.in, 0); got != test.want {
			t.Errorf("the first control of %q is at %d, want %d", test.in, got, test.want)
		}
	}
}

func TestValidFieldName(t *testing.T) {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for c := range 256 {
		name := "x" + string([]byte{byte(c)})
		want := strings.IndexByte(token, byte(c)) >= 0
		if got := http1.ValidFieldName(name); got != want {
			t.Errorf("ValidFieldName(%q) = %t, want %t", name, got, want)
		}
	}
	if http1.ValidFieldName("") {
		t.Error("the empty name is valid")
	}
}

func TestValidFieldValue(t *testing.T) {
	for at := range 20 {
		for c := range 256 {
			b := []byte("\t" + strings.Repeat("v", 18) + "\t")
			b[at] = byte(c)
			if got, want := http1.ValidFieldValue(string(b)), c >= ' ' && c != 0x7f || c == '\t'; got != want {
				t.Errorf("ValidFieldValue(%q) = %t, want %t", b, got, want)
			}
		}
	}
	if !http1.ValidFieldValue("") {
		t.Error("no value is invalid")
	}
}

func TestToken(t *testing.T) {
	tests := []struct {
		list string
		want bool
	}{
		{"", false}, {"close", true}, {"Close", true}, {"CLOSE", true}, {" close ", true}, {"\tclose", true},
		{"a, close", true}, {"close,a", true}, {",,close,,", true}, {", ,\t, close", true}, {"closed", false}, {"clos", false},
		{"a close", false}, {"close;q=1", false}, {"\"close\"", false}, {"\x43lose\x00", false}, {"ｃlose", false},
	}
	for _, test := range tests {
		if got := http1.Token(test.list, "close"); got != test.want {
			t.Errorf("Token(%q, close) = %t, want %t", test.list, got, test.want)
		}
	}
}
