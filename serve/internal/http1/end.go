package http1

import (
	"bytes"
	"net/http"
	"strings"
)

// skipLines is how many empty lines before a request are forgiven: some
// clients end a body with a CRLF too many.
const skipLines = 2

// Skip returns how many bytes of empty lines stand at the start of b, before a
// request line, and are to be dropped (RFC 9112, section 2.2). It forgives two;
// [Head.Parse] refuses a third.
func Skip(b []byte) int {
	n := 0
	for range skipLines {
		if len(b) < n+2 || b[n] != '\r' || b[n+1] != '\n' {
			break
		}
		n += 2
	}
	return n
}

// End returns the length of the head or trailer section at the start of b, with
// the empty line that ends it, or 0 if that line is not there yet. The bytes
// before from were searched by an earlier call and hold no end.
//
// A line that LF alone ends counts too, so that such a head is refused (or
// read, by [Lenient.BareLF]) when it is complete and not waited for.
func End(b []byte, from int) int {
	if from <= 2 {
		if n := emptyLine(b); n > 0 {
			return n
		}
	}
	for i := max(from-2, 0); ; {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return 0
		}
		i += j + 1
		if n := emptyLine(b[i:]); n > 0 {
			return i + n
		}
	}
}

// emptyLine returns the length of the empty line at the start of b, or 0.
func emptyLine(b []byte) int {
	switch {
	case len(b) > 0 && b[0] == '\n':
		return 1
	case len(b) > 1 && b[0] == '\r' && b[1] == '\n':
		return 2
	}
	return 0
}

// Early returns the refusal of a head that has not ended, if nothing that may follow can
// save it: its request line is wrong, or it has a control character that may not stand in
// a head, such as a CR without its LF. Otherwise it returns nil. The bytes before from
// were judged by an earlier call. What [Head.Parse] says of the whole head is the same.
func Early(b []byte, from int, o *Options) error {
	spoiled := spoils(b, from, o.Lenient.BareLF)
	line := bytes.IndexByte(b, '\n') + 1
	if !spoiled && (line <= from || strings.HasPrefix(preface, string(b[:line]))) {
		return nil
	}
	var p Head
	if spoiled {
		return p.Parse(string(b), http.Header{}, nil, o) // which names the first fault of several
	}
	return p.requestLine(&reader{s: string(b[:line]), lenient: &o.Lenient})
}

// spoils reports whether a control character among b[from:] has a head refused.
func spoils(b []byte, from int, bareLF bool) bool {
	for i := max(from-1, 0); i < len(b); i++ {
		switch c := b[i]; {
		case c == '\r':
			if i+1 < len(b) && b[i+1] != '\n' {
				return true
			}
		case c == '\n':
			if !bareLF && (i == 0 || b[i-1] != '\r') {
				return true
			}
		case c < ' ' && c != '\t' || c == 0x7f:
			return true
		}
	}
	return false
}

// TooLong returns the refusal of a head that has grown past a limit before it
// ended: 501 if b, which holds what there is of it, ends within the method, 414 if
// it ends within the request line, otherwise 431 (RFC 9112, section 3; RFC 6585,
// section 5).
func TooLong(b []byte) *Error {
	if !bytes.ContainsAny(b, " \n") {
		return errMethodLong
	}
	if bytes.IndexByte(b, '\n') < 0 {
		return errTargetLong
	}
	return errHeadLong
}
