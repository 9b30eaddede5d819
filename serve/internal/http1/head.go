package http1

import (
	"net/http"
	"strings"
)

// Expect is what a request's Expect field asks for.
type Expect uint8

// The kinds of expectation.
const (
	NoExpect    Expect = iota
	Continue           // 100-continue, in an HTTP/1.1 request
	OtherExpect        // something else: the server may answer 417
)

// Chunked is the [Head.Length] of a body whose length only its chunks tell.
const Chunked = -1

// Head is one request head. The zero value is ready; [Head.Parse] overwrites
// all of it. Its strings are parts of the string that was parsed.
type Head struct {
	Method, Target string
	Proto          string // "HTTP/1.0" or "HTTP/1.1"; a higher minor version is read as 1.1
	Minor          int    // 0 or 1
	Preface        bool   // it opens an HTTP/2 connection: PRI * of "HTTP/2.0", without fields
	Host           string // the Host field's value, "" if there is none

	Length    int64 // declared bytes of the body; 0 if there is none, [Chunked]
	HasLength bool  // a Content-Length field rules the body

	Close, KeepAlive, Upgrade bool // tokens of Connection; Upgrade not in HTTP/1.0

	Expect     Expect
	HasTrailer bool // a Trailer field was there
}

const preface = "PRI * HTTP/2.0\r\n\r\n"

// Parse reads s, a whole head as [End] measured it, and puts its fields into h,
// which must be empty, under their canonical names. Host and Transfer-Encoding
// are told by p and not put into h; Pragma: no-cache alone adds the Cache-Control
// that it stands for, as in net/http. Values lie in vals' spare capacity, one
// each, as long as there is any. It returns an [*Error] if the request is to be
// refused; p and h then hold what came before.
//
// Not safe for concurrent use of one Head.
func (p *Head) Parse(s string, h http.Header, vals []string, o *Options) error {
	*p = Head{}
	if s == preface {
		if !o.Lenient.Preface {
			return errPreface
		}
		p.Method, p.Target, p.Proto, p.Preface = "PRI", "*", "HTTP/2.0", true
		return nil
	}
	r := reader{s: s, lenient: &o.Lenient, h: h, vals: vals, left: o.maxFields()}
	if err := p.requestLine(&r); err != nil {
		return err
	}
	f := framing{minor: p.Minor}
	for {
		name, id, val, err := r.field()
		if err != nil {
			return err
		}
		if name == "" {
			break
		}
		if id == otherName || id >= firstPlain {
			r.add(name, id, val)
			continue
		}
		if err := p.special(&r, &f, id, val); err != nil {
			return err
		}
	}
	r.pragma()
	if err := p.frame(&f, &r); err != nil {
		return err
	}
	if err := p.checkHost(&f, &o.Lenient); err != nil {
		return err
	}
	if p.Method == http.MethodConnect && !o.Lenient.Connect && !o.Lenient.ConnectPath {
		return errConnect
	}
	return nil
}

// requestLine reads method, target and version.
func (p *Head) requestLine(r *reader) error {
	end := control(r.s, 0)
	line := r.s[:end]
	next, ok := r.lineEnd(end)
	method, rest, found := strings.Cut(line, " ")
	if !ok {
		return requestLineError(r.s, end, found)
	}
	target, proto, found := strings.Cut(rest, " ")
	if !found {
		return errRequestLine
	}
	p.Method, p.Target = knownMethod(method), target
	if p.Method == "" {
		return errMethod
	}
	if err := p.version(proto); err != nil {
		return err
	}
	r.i = next
	return checkTarget(p.Method, target, r.lenient)
}

// requestLineError says what a control character in the request line spoils.
func requestLineError(s string, at int, inTarget bool) error {
	switch {
	case at == len(s) || s[at] == '\n' || s[at] == '\r':
		return errLineEnd
	case inTarget:
		return errTarget
	}
	return errMethod
}

// knownMethod returns s if it is a token and "" if not. The usual methods come
// back as constants, so that keeping one keeps nothing else.
func knownMethod(s string) string {
	switch s {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodPost:
		return http.MethodPost
	case http.MethodHead:
		return http.MethodHead
	case http.MethodPut:
		return http.MethodPut
	case http.MethodDelete:
		return http.MethodDelete
	case http.MethodOptions:
		return http.MethodOptions
	case http.MethodPatch:
		return http.MethodPatch
	case http.MethodConnect:
		return http.MethodConnect
	}
	if !all(s, tokenChar) {
		return ""
	}
	return s
}

// version reads the protocol's version. A minor version above 1 is answered as
// 1.1 (RFC 9110, section 2.5).
func (p *Head) version(s string) error {
	switch s {
	case "HTTP/1.1":
		p.Proto, p.Minor = "HTTP/1.1", 1
		return nil
	case "HTTP/1.0":
		p.Proto, p.Minor = "HTTP/1.0", 0
		return nil
	}
	if len(s) != len("HTTP/1.1") || s[:5] != "HTTP/" || s[6] != '.' || !is(s[5], digitChar) || !is(s[7], digitChar) {
		return errProto
	}
	if s[5] != '1' {
		return errVersion
	}
	p.Proto, p.Minor = "HTTP/1.1", 1
	return nil
}

// special takes note of a field that bears on framing or routing.
func (p *Head) special(r *reader, f *framing, id nameID, val string) error {
	switch id {
	case nameHost:
		if f.hosts++; f.hosts > 1 {
			return errHosts
		}
		p.Host = val
		return nil
	case nameTransferEncoding:
		f.addCoding(val)
		return nil
	case nameContentLength:
		if p.HasLength {
			if !r.lenient.SameLengths || val != f.length {
				return errLengths
			}
			return nil
		}
		n, ok := parseLength(val)
		if !ok {
			return errLength
		}
		p.HasLength, p.Length, f.length = true, n, val
	case nameConnection:
		p.connection(val)
	case nameExpect:
		if r.seen&(1<<nameExpect) == 0 {
			p.expect(val)
		}
	case nameTrailer:
		p.HasTrailer = true
	}
	r.add(knownNames[id], id, val)
	return nil
}

// connection takes note of connection options. An HTTP/1.0 client cannot ask
// for another protocol (RFC 9110, section 7.8).
func (p *Head) connection(val string) {
	switch val {
	case "keep-alive":
		p.KeepAlive = true
		return
	case "close":
		p.Close = true
		return
	}
	p.Close = p.Close || Token(val, "close")
	p.KeepAlive = p.KeepAlive || Token(val, "keep-alive")
	p.Upgrade = p.Upgrade || p.Minor > 0 && Token(val, "upgrade")
}

// expect reads the first Expect field, as net/http does. An HTTP/1.0 client
// cannot be asked to go on (RFC 9110, section 10.1.1).
func (p *Head) expect(val string) {
	switch {
	case val == "":
	case !Token(val, "100-continue"):
		p.Expect = OtherExpect
	case p.Minor > 0:
		p.Expect = Continue
	}
}

// checkHost applies RFC 9112, section 3.2.
func (p *Head) checkHost(f *framing, lax *Lenient) error {
	if f.hosts == 0 {
		if p.Minor > 0 {
			return errNoHost
		}
		return nil
	}
	if !validHost(p.Host) {
		return errHost
	}
	if p.Target[0] == '/' || p.Target == "*" {
		if p.Host == "" && p.Minor > 0 && !lax.EmptyHost {
			return errEmptyHost
		}
		return nil
	}
	if lax.OtherHost {
		return nil
	}
	if p.Method == http.MethodConnect {
		if !lax.ConnectPath && !sameTunnel(p.Target, p.Host) {
			return errOtherHost
		}
		return nil
	}
	if a, scheme, ok := authority(p.Target); ok && !sameHost(a, p.Host, scheme) {
		return errOtherHost
	}
	return nil
}
