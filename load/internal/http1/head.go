// Package http1 reads the heads of HTTP/1.x answers, and the lines around the chunks of
// their bodies.
package http1

import (
	"bytes"
	"errors"
	"fmt"
)

// Framing is how an answer's end is found.
type Framing uint8

// The framings.
const (
	ByLength Framing = iota
	ByChunks
	ByClose
)

// Head is what an answer's header block says about it.
type Head struct {
	Status  int // 100 to 599
	Framing Framing
	Length  int64 // of the body in bytes, when framed by length
	Keep    bool  // the connection may carry another request
}

// headParser gathers from the fields what Head needs.
type headParser struct {
	Head
	minor   byte // of the version: '0' or '1'
	length  int64
	chunked bool
	close   bool
	alive   bool // keep-alive is asked for
}

// ErrField tells of a line that is no header field.
var ErrField = errors.New("a header line is not name: value, or holds a control character")

var (
	errStatusLine = errors.New("the status line is not HTTP/1.0 or HTTP/1.1")
	errLength     = errors.New("the Content-Length is not one number")
	errFraming    = errors.New("the Transfer-Encoding is not chunked alone")
)

// Parse reads a header block, its empty line included. bodiless tells that the answer
// has no body whatever its head says, as one to HEAD. It is stricter than
// RFC 9112 asks of a client: what a client could read in two ways is refused,
// for the count of answers rests on where they end.
func Parse(raw []byte, bodiless bool) (Head, error) {
	p := headParser{length: -1}
	line, rest, _ := bytes.Cut(raw, crlf)
	if err := p.statusLine(line); err != nil {
		return Head{}, err
	}
	for {
		line, rest, _ = bytes.Cut(rest, crlf)
		if len(line) == 0 {
			break
		}
		if err := p.field(line); err != nil {
			return Head{}, err
		}
	}
	return p.finish(bodiless)
}

var crlf = []byte("\r\n")

// statusLine reads "HTTP/1.1 200 OK"; the reason may be missing.
func (p *headParser) statusLine(line []byte) error {
	const shape = "HTTP/1.1 200"
	if len(line) < len(shape) || string(line[:7]) != shape[:7] || line[8] != ' ' ||
		(line[7] != '0' && line[7] != '1') {
		return errStatusLine
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return errStatusLine
		}
		p.Status = 10*p.Status + int(c-'0')
	}
	if err := CheckStatus(p.Status); err != nil {
		return err
	}
	if len(line) > len(shape) && line[12] != ' ' || !isText(line) {
		return errStatusLine
	}
	p.minor = line[7]
	return nil
}

// CheckStatus refuses a status without a class.
func CheckStatus(status int) error {
	if status < 100 || status > 599 {
		return fmt.Errorf("status %d is outside 100 to 599", status)
	}
	return nil
}

// field reads one header line.
func (p *headParser) field(line []byte) error {
	name, value, ok := cutField(line)
	if !ok {
		return ErrField
	}
	switch len(name) { // spares most fields the comparison
	case len("Connection"):
		if bytes.EqualFold(name, []byte("Connection")) {
			p.connection(value)
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if p.length >= 0 {
				return errLength
			}
			p.length, ok = parseLength(value)
			if !ok {
				return errLength
			}
		}
	case len("Transfer-Encoding"):
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			if p.chunked || p.minor == '0' || !bytes.EqualFold(value, []byte("chunked")) {
				return errFraming
			}
			p.chunked = true
		}
	}
	return nil
}

// connection reads the Connection field's tokens.
func (p *headParser) connection(value []byte) {
	for len(value) > 0 {
		var token []byte
		token, value, _ = bytes.Cut(value, []byte(","))
		token = bytes.Trim(token, " \t")
		p.close = p.close || bytes.EqualFold(token, []byte("close"))
		p.alive = p.alive || bytes.EqualFold(token, []byte("keep-alive"))
	}
}

// finish decides on the framing (RFC 9112, section 6.3).
func (p *headParser) finish(bodiless bool) (Head, error) {
	h := p.Head
	if p.chunked && p.length >= 0 {
		return Head{}, errFraming
	}
	h.Keep = !p.close && (p.minor == '1' || p.alive)
	switch {
	case h.Status == 101:
		return Head{}, errors.New("the protocol is switched unasked")
	case bodiless || h.Status < 200 || h.Status == 204 || h.Status == 304:
	case p.chunked:
		h.Framing = ByChunks
	case p.length >= 0:
		h.Length = p.length
	default:
		h.Framing, h.Keep = ByClose, false
	}
	return h, nil
}

// parseLength reads a decimal that fits in 63 bits.
func parseLength(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return int64(n), n < 1<<63
}

// parseChunkSize reads a chunk's size line without its line end.
func parseChunkSize(line []byte) (int64, bool) {
	line, _, _ = bytes.Cut(line, []byte(";")) // extensions mean nothing to us
	line = bytes.TrimRight(line, " \t")
	if len(line) == 0 || len(line) > 16 {
		return 0, false
	}
	var n uint64
	for _, c := range line {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return int64(n), n < 1<<63
}

// cutField splits a header line into a name, which is a token, and a value
// without the white space around it.
func cutField(line []byte) (name, value []byte, ok bool) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 {
		return nil, nil, false
	}
	for _, c := range line[:i] {
		if !isToken(c) {
			return nil, nil, false
		}
	}
	value = line[i+1:]
	return line[:i], bytes.Trim(value, " \t"), isText(value)
}

// isText reports whether b has no control characters but the tab.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isToken reports whether c may stand in a field's name (RFC 9110, section
// 5.6.2). The two words are the set of such characters.
func isToken(c byte) bool {
	const low, high = 0x03ff6cfa_00000000, 0x57ffffff_c7fffffe
	return c < 0x80 && (uint64(low)>>c|uint64(high)>>(c-64))&1 != 0
}
