package http1_test

import (
	"regexp"
	"strings"

	"github.com/tarehq/tare/serve/internal/http1"
)

// The signs of a difference to net/http.
const (
	stricter = "+"
	laxer    = "-"
	other    = "=" // both read the request, or both refuse it, but not alike
)

// A difference is one thing about an input that net/http and ours read
// differently: a request that looks different, or where reading ends.
type difference struct {
	sign         string
	in           []byte
	ours, theirs outcome
	a, b         request // ours and theirs, if it is a request
}

// differ compares two outcomes.
func differ(in []byte, ours, theirs outcome) []difference {
	var all []difference
	n := min(len(ours.requests), len(theirs.requests))
	for i := range n {
		a, b := ours.requests[i], theirs.requests[i]
		if i == len(ours.requests)-1 && ours.cut || i == len(theirs.requests)-1 && theirs.cut {
			a.body, a.trailer, b.body, b.trailer = "", nil, "", nil
		}
		if !same(a, b) {
			all = append(all, difference{sign: other, in: in, ours: ours, theirs: theirs, a: a, b: b})
		}
	}
	end := difference{in: in, ours: ours, theirs: theirs}
	switch a, b := ours.verdict == reject, theirs.verdict == reject; {
	case a && (!b || len(ours.requests) < len(theirs.requests)):
		end.sign = stricter
	case b && (!a || len(ours.requests) > len(theirs.requests)):
		end.sign = laxer
	case ours.verdict != theirs.verdict || len(ours.requests) != len(theirs.requests) ||
		a && theirs.status != 0 && ours.status != theirs.status:
		end.sign = other
	default:
		return all
	}
	return append(all, end)
}

// A class recognises differences of one cause, which testdata/differences.tsv
// justifies under the same name.
type class struct {
	sign    string
	reason  string // of our refusal; "" if there is none, or for any
	matches func(d difference) bool
	lenient http1.Lenient // undoes it, if it is not zero
}

var (
	bareLF       = regexp.MustCompile(`(^|[^\r])\n`)
	foldedLine   = regexp.MustCompile(`\n[ \t]`)
	absoluteForm = regexp.MustCompile(`^\S+ [A-Za-z][A-Za-z0-9+.-]*://`)
	firstDigit   = regexp.MustCompile(`^[89A-Fa-f][0-9A-Fa-f]{15}([; \t]|$)`)
	hugeSize     = regexp.MustCompile(`\n[4-7][0-9A-Fa-f]{15}[\r; \t]`)
	sizeSpace    = regexp.MustCompile(`\n[0-9A-Fa-f]+[ \t]+;`)
)

// target returns the request target of the head that was refused.
func (d difference) target() string {
	parts := strings.Split(strings.SplitN(d.ours.section, "\r\n", 2)[0], " ")
	if len(parts) != 3 {
		return ""
	}
	return parts[1]
}

func (d difference) method() string {
	method, _, _ := strings.Cut(d.ours.section, " ")
	return method
}

// fieldValues returns the values of a field in the head that was refused.
func (d difference) fieldValues(name string) []string {
	var values []string
	for line := range strings.SplitSeq(d.ours.section, "\n") {
		if n, v, ok := strings.Cut(strings.TrimRight(line, "\r"), ":"); ok && strings.EqualFold(n, name) {
			values = append(values, strings.Trim(v, " \t"))
		}
	}
	return values
}

func isRaw(r rune) bool { return r == '#' || r > '~' }

// noCRLF is the reason of ours for a CR or an LF that stands alone.
const noCRLF = "line not ended by CRLF"

// classes are all deliberate differences to net/http by name.
var classes = map[string]class{
	"bare-lf": {stricter, noCRLF, func(d difference) bool {
		return bareLF.MatchString(d.ours.section) && !d.lineEndBetween() && !d.waitsForFour() && !d.waitsForTrailer()
	}, http1.Lenient{BareLF: true}},
	"line-end-between": {stricter, "", difference.lineEndBetween, http1.Lenient{}},
	"fold": {stricter, "white space at the start of a field line", func(d difference) bool {
		return foldedLine.MatchString(d.ours.section)
	}, http1.Lenient{Fold: true}},
	"same-lengths": {stricter, "more than one Content-Length", func(d difference) bool {
		v := d.fieldValues("Content-Length")
		return len(v) > 1 && v[0] == v[1]
	}, http1.Lenient{SameLengths: true}},
	"length-and-chunked": {stricter, "both Content-Length and Transfer-Encoding", func(d difference) bool {
		return len(d.fieldValues("Content-Length")) > 0 && len(d.fieldValues("Transfer-Encoding")) == 1
	}, http1.Lenient{LengthAndChunked: true}},
	"old-chunked": {stricter, "Transfer-Encoding in an HTTP/1.0 request", func(d difference) bool {
		return strings.Contains(d.ours.section, " HTTP/1.0\r\n") && len(d.fieldValues("Transfer-Encoding")) > 0
	}, http1.Lenient{OldChunked: true}},
	"other-host": {stricter, "Host differs from the request target", func(d difference) bool {
		return absoluteForm.MatchString(d.ours.section)
	}, http1.Lenient{OtherHost: true}},
	"connect-other-host": {stricter, "Host differs from the request target", func(d difference) bool {
		return d.method() == "CONNECT"
	}, http1.Lenient{OtherHost: true, Connect: true}},
	"connect-to-handler": {stricter, "CONNECT is not served", func(d difference) bool {
		return d.method() == "CONNECT"
	}, http1.Lenient{Connect: true}},
	"raw-target": {stricter, "invalid request target", func(d difference) bool {
		return strings.IndexFunc(d.target(), isRaw) >= 0
	}, http1.Lenient{RawTarget: true}},
	"user-info": {stricter, "user information in the request target", func(d difference) bool {
		return absoluteForm.MatchString(d.ours.section) && strings.Contains(d.target(), "@")
	}, http1.Lenient{UserInfo: true}},
	"connect": {stricter, "request target does not fit the method", func(d difference) bool {
		return d.method() == "CONNECT" && !strings.Contains(d.target(), "://")
	}, http1.Lenient{ConnectPath: true}},
	"connect-url": {stricter, "request target does not fit the method", func(d difference) bool {
		return d.method() == "CONNECT" && strings.Contains(d.target(), "://")
	}, http1.Lenient{}},
	"connect-empty": {stricter, "malformed request line", func(d difference) bool {
		return strings.HasPrefix(d.ours.section, "CONNECT  HTTP/1.")
	}, http1.Lenient{}},
	"preface-to-handler": {stricter, "HTTP/2 is not served here; HTTP/1.1 and HTTP/1.0 are", func(d difference) bool {
		return d.ours.section == "PRI * HTTP/2.0\r\n\r\n"
	}, http1.Lenient{Preface: true}},
	"preface": {stricter, "unsupported HTTP version; HTTP/1.1 and HTTP/1.0 are served", func(d difference) bool {
		return strings.HasPrefix(d.ours.section, "PRI * HTTP/2.0\r\n")
	}, http1.Lenient{}},
	"chunk-size": {stricter, "chunk size too large", func(d difference) bool {
		return firstDigit.MatchString(d.ours.section)
	}, http1.Lenient{}},
	"connect-host": {stricter, "missing Host", func(d difference) bool {
		return d.method() == "CONNECT"
	}, http1.Lenient{}},
	"asterisk": {stricter, "request target does not fit the method", func(d difference) bool {
		return d.target() == "*" && d.method() != "OPTIONS"
	}, http1.Lenient{}},
	"opaque": {stricter, "request target does not fit the method", func(d difference) bool {
		return strings.Contains(d.target(), ":") && !strings.HasPrefix(d.target(), "/") && !absoluteForm.MatchString(d.ours.section)
	}, http1.Lenient{}},
	"authority": {stricter, "invalid request target", func(d difference) bool {
		return absoluteForm.MatchString(d.ours.section) && strings.IndexFunc(d.target(), isRaw) < 0
	}, http1.Lenient{}},
	"host": {stricter, "invalid Host", func(d difference) bool {
		v := d.fieldValues("Host")
		return len(v) == 1 && strings.ContainsAny(v[0], ":[]%'!*;")
	}, http1.Lenient{}},
	"host-empty": {stricter, "empty Host", func(d difference) bool {
		v := d.fieldValues("Host")
		return len(v) == 1 && v[0] == ""
	}, http1.Lenient{EmptyHost: true}},
	"fields": {stricter, "too many fields", func(d difference) bool {
		return strings.Count(d.ours.section, "\n") > http1.DefaultMaxFields
	}, http1.Lenient{}},
	"chunk-extension": {stricter, "malformed chunk size", func(d difference) bool {
		return strings.ContainsAny(d.ours.section, "; \t")
	}, http1.Lenient{}},
	"chunk-line": {stricter, "chunk size line too long", func(d difference) bool {
		return len(d.ours.section) >= 1000
	}, http1.Lenient{}},
	"chunk-extensions": {stricter, "too many chunk extensions", func(d difference) bool {
		return strings.Contains(d.ours.section, ";")
	}, http1.Lenient{}},
	"chunk-end": {stricter, "chunk data not ended by CRLF", func(d difference) bool {
		return d.theirs.verdict == body && len(d.ours.section) == 1
	}, http1.Lenient{}},
	"trailer-name": {stricter, "invalid field name", func(d difference) bool {
		n := len(d.ours.requests)
		return n > 0 && d.ours.requests[n-1].trailer != nil && strings.Contains(d.ours.section, " ")
	}, http1.Lenient{}},
	"early":       {stricter, "", difference.neverEnds, http1.Lenient{}},
	"trailer-end": {stricter, "", difference.waitsForTrailer, http1.Lenient{}},
	"short":       {stricter, "", difference.waitsForFour, http1.Lenient{}},

	"empty-lines": {laxer, "", func(d difference) bool { return d.ours.skipped }, http1.Lenient{}},
	"late": {laxer, "", func(d difference) bool {
		if d.ours.verdict != incomplete && d.ours.verdict != body && d.ours.verdict != accept {
			return false
		}
		return refusedLater(d.in)
	}, http1.Lenient{}},
	"huge-size": {laxer, "", func(d difference) bool {
		return d.ours.verdict == body && hugeSize.Match(d.in)
	}, http1.Lenient{}},
	"trailer-long": {laxer, "", func(d difference) bool { return d.ours.trailer >= 4<<10 }, http1.Lenient{}},
	"size-space":   {laxer, "", func(d difference) bool { return sizeSpace.Match(d.in) }, http1.Lenient{}},

	"minor-version": {other, "", func(d difference) bool {
		return d.requestsDiffer() && d.a.proto != d.b.proto
	}, http1.Lenient{}},
	"trailer-fields": {other, "", func(d difference) bool {
		return d.requestsDiffer() && len(d.a.trailer) < len(d.b.trailer)
	}, http1.Lenient{}},
	"status": {other, "", func(d difference) bool {
		return !d.requestsDiffer() && d.ours.verdict == reject && d.theirs.verdict == reject
	}, http1.Lenient{}},
}

// neverEnds reports whether ours refused a head that has not ended, but for a bare LF,
// which another class is about. A bare LF may have it refused for an earlier fault.
func (d difference) neverEnds() bool {
	section := []byte(d.ours.section)
	forLF := d.ours.reason == noCRLF && bareLF.Match(section)
	return !d.ours.cut && http1.End(section, 0) == 0 && !forLF && !d.waitsForFour() && !d.lineEndBetween()
}

// waitsForFour reports whether ours refused a head of less than four bytes, for
// which net/http waits between requests.
func (d difference) waitsForFour() bool {
	n := len(d.ours.requests)
	return len(d.ours.section) < 4 && n > 0 && n == len(d.theirs.requests) && d.theirs.verdict == accept
}

// lineEndBetween reports whether ours refused a head behind a POST that begins
// with a CR or an LF alone.
func (d difference) lineEndBetween() bool {
	n := len(d.ours.requests)
	return n > 0 && !d.ours.cut && d.ours.requests[n-1].method == "POST" && !d.waitsForFour() &&
		strings.IndexAny(d.ours.section, "\r\n") == 0
}

// waitsForTrailer reports whether ours refused a trailer section of which
// net/http does not see the end.
func (d difference) waitsForTrailer() bool {
	n := len(d.ours.requests)
	return n > 0 && d.ours.cut && d.ours.requests[n-1].trailer != nil && d.theirs.verdict == body &&
		!strings.HasSuffix(d.ours.section, "\r\n\r\n")
}

// requestsDiffer reports whether it is a request that differs, and that in
// nothing but a minor version above 1 or dropped trailer fields.
func (d difference) requestsDiffer() bool {
	a, b := d.a, d.b
	if same(a, b) {
		return false
	}
	if strings.HasPrefix(b.proto, "HTTP/1.") && b.proto[7] > '1' {
		a.proto, b.proto = "", ""
	}
	if len(a.trailer) < len(b.trailer) {
		a.trailer, b.trailer = nil, nil
	}
	return same(a, b)
}

// refusedLater reports whether ours refuses a stream that it waits for more of
// once the head, the line or the section is complete.
func refusedLater(in []byte) bool {
	whole := append(in[:len(in):len(in)], "\r\n\r\n"...)
	return drive(whole, len(whole), strict).verdict == reject
}

// classify names the class of a difference, "" if there is none.
func classify(d difference) string {
	for name, c := range classes {
		if c.sign == d.sign && (c.reason == "" || c.reason == d.refusal()) && c.matches(d) {
			return name
		}
	}
	return ""
}

// refusal is the reason of ours, if ours alone refuses.
func (d difference) refusal() string {
	if d.sign != stricter {
		return ""
	}
	return d.ours.reason
}
