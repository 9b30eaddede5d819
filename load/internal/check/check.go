// Package check reports whether answers are as their targets ask.
package check

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// Field is a header field.
type Field struct{ Name, Value string }

// Check is what makes an answer correct. It is safe for concurrent use.
type Check struct {
	Status   int     // 0: any
	Header   []Field // each is there with this value
	Contains []byte  // in the body; nil: any
	Length   int64   // of the body, in bytes; negative: any
	Digest   []byte  // SHA-256 of the body; nil: any
}

// NeedsBody reports whether c reads the body.
func (c *Check) NeedsBody() bool {
	return c.Contains != nil || c.Length >= 0 || c.Digest != nil
}

// HeadOK checks the status and the header fields of a raw header block.
func (c *Check) HeadOK(status int, head []byte) bool {
	if c.Status != 0 && status != c.Status {
		return false
	}
	for _, h := range c.Header {
		if !headHas(head, h) {
			return false
		}
	}
	return true
}

// FieldsOK is HeadOK for a header that a library has parsed.
func (c *Check) FieldsOK(status int, header http.Header) bool {
	if c.Status != 0 && status != c.Status {
		return false
	}
	for _, h := range c.Header {
		found := false
		for _, v := range header.Values(h.Name) {
			found = found || v == h.Value
		}
		if !found {
			return false
		}
	}
	return true
}

// ListOK is HeadOK for HTTP/2's fields.
func (c *Check) ListOK(status int, fields []hpack.HeaderField) bool {
	if c.Status != 0 && status != c.Status {
		return false
	}
	for _, h := range c.Header {
		if !slices.ContainsFunc(fields, func(f hpack.HeaderField) bool { return f.Value == h.Value && strings.EqualFold(f.Name, h.Name) }) {
			return false
		}
	}
	return true
}

// headHas reports whether one of head's lines is the field h: names without
// regard to case, values exactly but for the white space around them.
func headHas(head []byte, h Field) bool {
	for line := range bytes.Lines(head) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if ok && len(name) == len(h.Name) && strings.EqualFold(string(name), h.Name) &&
			string(bytes.TrimSpace(value)) == h.Value {
			return true
		}
	}
	return false
}

// Stream checks a body as it comes. It is made ready by Reset and may be used
// again after another.
type Stream struct {
	c     *Check
	n     int64
	sum   hash.Hash // nil until a digest is asked for
	tail  []byte    // the end of what came, one byte shorter than what is looked for
	found bool
}

// Reset begins to check a body by c.
func (st *Stream) Reset(c *Check) {
	st.c, st.n, st.tail, st.found = c, 0, st.tail[:0], c.Contains == nil
	if c.Digest == nil {
		return
	}
	if st.sum == nil {
		st.sum = sha256.New()
	}
	st.sum.Reset()
}

// Write takes the next bytes of the body, which it does not keep. It never
// fails.
func (st *Stream) Write(p []byte) (int, error) {
	st.n += int64(len(p))
	if st.c.Digest != nil {
		st.sum.Write(p)
	}
	if !st.found {
		st.search(p)
	}
	return len(p), nil
}

// search looks for the substring in p and across the border before it.
func (st *Stream) search(p []byte) {
	want := st.c.Contains
	border := append(st.tail, p[:min(len(p), len(want)-1)]...)
	if st.found = bytes.Contains(border, want) || bytes.Contains(p, want); st.found {
		return
	}
	if len(p) >= len(want)-1 {
		border = append(st.tail[:0], p[len(p)-(len(want)-1):]...)
	}
	st.tail = append(st.tail[:0], border[max(0, len(border)-(len(want)-1)):]...)
}

// OK reports whether the body written since Reset is correct; the status and
// the header are the caller's to check.
func (st *Stream) OK() bool {
	return st.found &&
		(st.c.Length < 0 || st.n == st.c.Length) &&
		(st.c.Digest == nil || bytes.Equal(st.sum.Sum(nil), st.c.Digest))
}
