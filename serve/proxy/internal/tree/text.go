package tree

import "strings"

// NotEmpty reports whether s says something, as the path of a file does.
func NotEmpty(s string) bool { return s != "" && !strings.Contains(s, "\x00") }

// IsFieldValue reports whether a field of a header can have s in one line.
func IsFieldValue(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// IsPath reports whether s is a URL's path, without a query.
func IsPath(s string) bool {
	return strings.HasPrefix(s, "/") && IsFieldValue(s) && !strings.ContainsAny(s, "?# ")
}

// IsHost reports whether s is a host as requests name it, with or without a port: one in ASCII, no
// pattern of hosts.
func IsHost(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune("/@?#,*", c) })
}

// IsToken reports whether s is one of RFC 9110, section 5.6.2.
func IsToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// IsLabel reports whether s is a name as Kubernetes has them.
func IsLabel(s string) bool {
	return s != "" && len(s) <= 253 && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z')
	})
}
