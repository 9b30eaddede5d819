package pattern

import (
	"net"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// Unescape returns s without percent-encoding, or s itself if that is broken.
func Unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// Escape percent-encodes a segment, dots too where cleaning would otherwise take
// it away.
func Escape(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// CleanPath returns p beginning with a slash, without empty and dot segments;
// it ends in a slash if p does. It allocates only if that is not p.
func CleanPath(p string) string {
	if p != "" && p[0] == '/' && IsClean(p[1:]) {
		return p
	}
	c := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && c != "/" {
		c += "/"
	}
	return c
}

// IsClean reports whether the rest of a path behind a slash has no empty and no
// dot segments. It may end in a slash.
func IsClean(p string) bool {
	for {
		seg, rest, more := strings.Cut(p, "/")
		if seg == "." || seg == ".." || seg == "" && more {
			return false
		}
		if !more {
			return true
		}
		p = rest
	}
}

// Hostname returns a request's host without its port.
func Hostname(host string) string {
	if strings.IndexByte(host, ':') < 0 {
		return host
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return host
	}
	return name
}

// Fold returns s with ASCII letters in lower case. Its length stays.
func Fold(s string) string {
	if !HasUpper(s) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// HasUpper reports whether s has an upper-case ASCII letter.
func HasUpper(s string) bool {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

func isASCIILetter(r rune) bool { return r < utf8.RuneSelf && isLetter(byte(r)) }
