package http1_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

func TestValidFieldValue(t *testing.T) {
	// Each byte at each place of a word, and after one.
	for at := range 20 {
		for c := range 256 {
			b := []byte(strings.Repeat("v", 20))
			b[at] = byte(c)
			want := c == '\t' || c >= ' ' && c != 0x7f
			if got := http1.ValidFieldValue(string(b)); got != want {
				t.Errorf("ValidFieldValue(%q) = %t, want %t", b, got, want)
			}
		}
	}
	// High bytes beside a control must neither hide nor make one.
	for _, test := range []struct {
		in   string
		want bool
	}{
		{"", true}, {"\x80\x00\x80\x80\x80\x80\x80\x80", false}, {"\xff\xff\xff\xff\xff\xff\xff\x1f", false},
		{"\xff\x7f\xff\xff\xff\xff\xff\xff", false}, {"\x9f\x9f\x9f\xa0\xff\x80\x81\x20", true}, {"\t\t\t\t\t\t\t\t\t\x0b", false},
	} {
		if got := http1.ValidFieldValue(test.in); got != test.want {
			t.Errorf("ValidFieldValue(%q) = %t, want %t", test.in, got, test.want)
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
