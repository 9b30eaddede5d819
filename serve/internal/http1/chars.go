package http1

import (
	"math/bits"
	"strings"
)

// Classes of characters, as bits in a table.
const (
	tokenChar  = 1 << iota // RFC 9110, section 5.6.2
	targetChar             // what may stand in a target: visible ASCII without '#'
	plainChar              // what URL's fast path takes: a path that needs no escape
	hostChar               // RFC 3986 reg-name: unreserved and sub-delims
	digitChar
	hexChar
	blankChar // at the ends of a value, where it is no part of it
)

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

var classes = classTable()

func classTable() (t [256]uint8) {
	mark := func(set string, class uint8) {
		for i := range len(set) {
			t[set[i]] |= class
		}
	}
	for c := '!'; c <= '~'; c++ {
		t[c] |= targetChar
	}
	t['#'] &^= targetChar
	mark(letters+digits, tokenChar|plainChar|hostChar)
	mark("!#$%&'*+-.^_`|~", tokenChar)
	mark("-_.~$&+,/:;=@", plainChar)
	mark("-._~!$&'()*+,;=", hostChar)
	mark(digits, digitChar)
	mark(digits+"abcdefABCDEF", hexChar)
	mark(" \t\r\n", blankChar)
	return t
}

func is(c byte, class uint8) bool { return classes[c]&class != 0 }

// all reports whether s is not empty and of one class throughout.
func all(s string, class uint8) bool {
	for i := range len(s) {
		if !is(s[i], class) {
			return false
		}
	}
	return s != ""
}

// control returns the index of the first control character of s at or after i,
// len(s) if there is none. It looks at eight bytes at a time.
func control(s string, i int) int {
	const (
		ones = 0x0101010101010101
		tops = 0x80 * ones
	)
	for ; i+8 <= len(s); i += 8 {
		x := word(s[i : i+8])
		del := x ^ 0x7f*ones
		// A top bit is set by the subtraction in each byte below 0x20, or
		// equal to 0x7F, whose own top bit is clear. Borrows may set more
		// of them, but only above the first.
		if m := ((x - 0x20*ones) | (del - ones)) &^ x & tops; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == 0x7f {
			return i
		}
	}
	return i
}

// word returns the eight bytes of s, the first lowest: one load when compiled.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// TrimValue removes blanks and line breaks from both ends of a field's value, as net/http does.
func TrimValue(s string) string {
	for s != "" && is(s[0], blankChar) {
		s = s[1:]
	}
	for s != "" && is(s[len(s)-1], blankChar) {
		s = s[:len(s)-1]
	}
	return s
}

// ValidFieldName reports whether s is a token, as a field name must be.
func ValidFieldName(s string) bool { return all(s, tokenChar) }

// ValidFieldValue reports whether s may be a field's value: no control characters but tabs.
func ValidFieldValue(s string) bool {
	for i := 0; ; i++ {
		if i = control(s, i); i == len(s) {
			return true
		}
		if s[i] != '\t' {
			return false
		}
	}
}

// Token reports whether the comma-separated list holds the token, which must
// be in lower case. It compares without case and allocates nothing.
func Token(list, token string) bool {
	for list != "" {
		var item string
		item, list, _ = strings.Cut(list, ",")
		if fold(TrimValue(item), token) {
			return true
		}
	}
	return false
}

// fold reports whether s equals lower, which is in lower case, without case.
func fold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
