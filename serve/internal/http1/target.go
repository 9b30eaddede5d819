package http1

import (
	"net/url"
	"strings"
)

// checkTarget applies RFC 9112, section 3.2: which form of target a method may
// have, and which characters.
func checkTarget(method, target string, lax *Lenient) error {
	if target == "" {
		return errRequestLine
	}
	if !lax.RawTarget && !all(target, targetChar) {
		return errTarget // control characters and spaces end a target before it comes here
	}
	switch {
	case method == "CONNECT":
		if !validConnect(target, lax) {
			return errTargetForm
		}
		return nil
	case target[0] == '/':
		return nil
	case target == "*":
		if method != "OPTIONS" {
			return errTargetForm
		}
		return nil
	}
	a, _, ok := authority(target)
	if !ok {
		return errTargetForm
	}
	if at := strings.LastIndexByte(a, '@'); at >= 0 {
		if !lax.UserInfo {
			return errUserInfo
		}
		a = a[at+1:]
	}
	if a == "" || a[0] == ':' || !validHost(a) {
		return errTarget
	}
	return nil
}

// validConnect reports whether CONNECT may have the target: a host and a port
// (RFC 9110, section 9.3.6).
func validConnect(target string, lax *Lenient) bool {
	if lax.ConnectPath && (target[0] == '/' || validHost(target)) {
		return true
	}
	host, port := splitPort(target)
	if host == "" || port == "" || !validHost(target) {
		return false
	}
	n, ok := parseLength(port)
	return ok && 0 < n && n < 1<<16
}

// authority cuts the authority out of an absolute target.
func authority(target string) (authority, scheme string, ok bool) {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || !validScheme(scheme) {
		return "", "", false
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest, scheme, true
}

func validScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !is(c, digitChar) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// validHost reports whether s is a host with or without a port, or empty
// (RFC 3986, section 3.2.2; RFC 9110, section 7.2).
func validHost(s string) bool {
	i := 0
	if s != "" && s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 0 || !validLiteral(s[1:end]) {
			return false
		}
		i = end + 1
	} else {
		for i < len(s) && is(s[i], hostChar) {
			i++
		}
		for i < len(s) && s[i] == '%' {
			if i+2 >= len(s) || !is(s[i+1], hexChar) || !is(s[i+2], hexChar) {
				return false
			}
			for i += 3; i < len(s) && is(s[i], hostChar); {
				i++
			}
		}
	}
	if i == len(s) {
		return true
	}
	return s[i] == ':' && (i+1 == len(s) || all(s[i+1:], digitChar))
}

// validLiteral reports whether s may stand in brackets: an IPv6 address or an
// IPvFuture, by their characters.
func validLiteral(s string) bool {
	for i := range len(s) {
		if c := s[i]; !is(c, hostChar) && c != ':' {
			return false
		}
	}
	return s != ""
}

// splitPort cuts a valid host at its last colon. What follows that is the port,
// or no number if the host is an address in brackets and has none.
func splitPort(s string) (host, port string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// sameHost reports whether Host names an absolute target's authority. A port
// that is the scheme's own may be left out on either side.
func sameHost(authority, host, scheme string) bool {
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	return strings.EqualFold(withoutPort(authority, scheme), withoutPort(host, scheme))
}

// sameTunnel reports whether Host names the target of CONNECT. It may leave out the port,
// as in the example of RFC 9110, section 9.3.6.
func sameTunnel(target, host string) bool {
	if strings.EqualFold(target, host) {
		return true
	}
	name, _ := splitPort(target)
	return strings.EqualFold(name, host)
}

func withoutPort(s, scheme string) string {
	host, port := splitPort(s)
	if port == "" || port == "80" && strings.EqualFold(scheme, "http") || port == "443" && strings.EqualFold(scheme, "https") {
		return host
	}
	return s
}

// URL fills u from a request target as net/http does: the target of CONNECT is
// a host with its port unless it is a path, all others are URLs or paths. A path
// without escapes is split in place and allocates nothing. It returns an
// [*Error] if the target is no URL.
func URL(u *url.URL, method, target string) error {
	if plainURL(u, target) {
		return nil
	}
	bare := method == "CONNECT" && !strings.HasPrefix(target, "/")
	if bare {
		target = "http://" + target
	}
	parsed, err := url.ParseRequestURI(target)
	if err != nil {
		return errTarget
	}
	*u = *parsed
	if bare {
		u.Scheme = ""
	}
	return nil
}

// plainURL does the same for a path, with or without a query, in which nothing
// is escaped or would have to be.
func plainURL(u *url.URL, target string) bool {
	if target == "" || target[0] != '/' {
		return false
	}
	i := 1
	for i < len(target) && is(target[i], plainChar) {
		i++
	}
	if i == len(target) {
		*u = url.URL{Path: target}
		return true
	}
	if target[i] != '?' {
		return false
	}
	query := target[i+1:]
	if control(query, 0) < len(query) {
		return false
	}
	*u = url.URL{Path: target[:i], RawQuery: query, ForceQuery: query == ""}
	return true
}
