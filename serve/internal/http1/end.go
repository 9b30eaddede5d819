package http1

import "bytes"

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
