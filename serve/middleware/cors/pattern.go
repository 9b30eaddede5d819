package cors

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// pattern is an origin, or all that lie below one.
type pattern struct {
	below  bool
	scheme string // with ://
	host   string // of below with the dot before it
	port   string // with the colon before it; empty: the scheme's
}

// longestOrigin is that of the longest scheme here, host name and port.
const longestOrigin = len("https://") + 253 + len(":65535")

// parsePattern reads an origin as browsers write it, or says what is wrong with it.
func parsePattern(text string) (p pattern, why string) {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case text == "null":
		return p, "any page can have this origin, such as one in a sandbox"
	case !ok:
		return p, "an origin has a scheme, as in https://shop.example"
	case scheme != "http" && scheme != "https":
		return p, "the scheme is not http or https"
	case strings.ContainsAny(rest, "/?#@"):
		return p, "an origin is a scheme, a host and a port: no user, no path, no slash at its end"
	case len(text) > longestOrigin:
		return p, "it is longer than a host's name can be"
	}
	p.scheme = scheme + "://"
	p.host = rest
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
		p.host, p.port = rest[:i], rest[i:]
		if why := wrongPort(scheme, p.port[1:]); why != "" {
			return p, why
		}
	}
	if host, ok := strings.CutPrefix(p.host, "*."); ok {
		p.below, p.host = true, host
	}
	if strings.Contains(p.host, "*") {
		return p, "a wildcard stands for whole labels at the beginning, as in https://*.shop.example"
	}
	if why := wrongHost(p.host, p.below); why != "" {
		return p, why
	}
	if p.below {
		p.host = "." + p.host
	}
	return p, ""
}

func wrongPort(scheme, port string) string {
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || n == 0 || port[0] == '0' || port[0] == '+':
		return "the port is not a number from 1 to 65535"
	case scheme == "https" && n == 443, scheme == "http" && n == 80:
		return "browsers do not write the scheme's own port, so it would never match"
	}
	return ""
}

func wrongHost(host string, below bool) string {
	if literal, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(literal, "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" || "["+addr.String()+"]" != host || below {
			return "the host is not an IPv6 address in its short form, or stands behind a wildcard"
		}
		return ""
	}
	if !validHost(host) {
		return "the host is not a name in lower case, with punycode for other letters"
	}
	labels := strings.Split(host, ".")
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is4() || below {
			return "the host is not an IPv4 address, or stands behind a wildcard"
		}
	} else if below && len(labels) < 2 && host != "localhost" {
		return "the wildcard is for a whole top-level domain"
	}
	return ""
}

// validHost reports whether the host is labels with a dot between each two.
func validHost(host string) bool {
	dot := true // just before
	for i := range len(host) {
		switch c := host[i]; {
		case c == '.':
			if dot {
				return false
			}
			dot = true
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			dot = false
		default:
			return false
		}
	}
	return !dot
}

// risk returns why the pattern is not safe with the other options; empty: it is.
func (p *pattern) risk(o *Options) string {
	host := strings.TrimPrefix(p.host, ".")
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	own := host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback()
	if p.scheme == "https://" || o.Insecure || own || !o.Credentials && !p.below {
		return ""
	}
	return "whoever is on the network's path can act as a site without TLS; Options.Insecure admits it"
}

// matches reports whether the origin lies below the pattern's.
func (p *pattern) matches(origin string) bool {
	rest, ok := strings.CutPrefix(origin, p.scheme)
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, p.port); !ok {
		return false
	}
	rest, ok = strings.CutSuffix(rest, p.host)
	return ok && validHost(rest)
}

// validToken reports whether s is a token (RFC 9110, section 5.6.2).
func validToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// wrongMethod, wrongHeader and wrongExposed return what is wrong with a value that is not
// "*"; empty: nothing. What the Fetch standard forbids would never be asked for.
func wrongMethod(method string) string {
	upper := strings.ToUpper(method)
	switch {
	case !validToken(method):
		return "it is not a method"
	case slices.Contains([]string{"CONNECT", "TRACE", "TRACK"}, upper):
		return "no browser sends this method"
	case method != upper && slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}, upper):
		return "methods are in upper case"
	}
	return ""
}

// forbidden are the request's fields that browsers alone set.
var forbidden = []string{"accept-charset", "accept-encoding", "access-control-request-headers",
	"access-control-request-method", "connection", "content-length", "cookie", "cookie2", "date", "dnt", "expect",
	"host", "keep-alive", "origin", "referer", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade", "via"}

func wrongHeader(name string) string {
	lower := strings.ToLower(name)
	switch {
	case !validToken(name):
		return "it is not a field's name"
	case slices.Contains(forbidden, lower), strings.HasPrefix(lower, "sec-"), strings.HasPrefix(lower, "proxy-"):
		return "no browser has scripts set this field"
	}
	return ""
}

func wrongExposed(name string) string {
	lower := strings.ToLower(name)
	switch {
	case !validToken(name):
		return "it is not a field's name"
	case lower == "set-cookie", lower == "set-cookie2":
		return "no browser shows this field to scripts"
	}
	return ""
}
