package load

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// verifier is what makes the answers of each target correct.
type verifier []check

// check is a compiled Verify.
type check struct {
	status   int
	header   []Field
	contains []byte
	length   int64 // negative: any
	digest   []byte
}

// compileVerify checks v; head tells that the answer will have no body.
func compileVerify(v *Verify, head bool) (check, error) {
	c := check{status: v.Status, header: v.Header, length: -1}
	if v.Status != 0 && (v.Status < 200 || v.Status > 599) {
		return c, fmt.Errorf("verify: status %d is outside 200 to 599", v.Status)
	}
	for _, h := range v.Header {
		if !httpguts.ValidHeaderFieldName(h.Name) {
			return c, fmt.Errorf("verify: header %q: the name is not a token", h.Name)
		}
	}
	if v.Contains != "" {
		c.contains = []byte(v.Contains)
	}
	if v.Length != nil {
		if c.length = *v.Length; c.length < 0 {
			return c, fmt.Errorf("verify: length %d is negative", c.length)
		}
	}
	if v.SHA256 != "" {
		d, err := hex.DecodeString(v.SHA256)
		if err != nil || len(d) != sha256.Size {
			return c, fmt.Errorf("verify: SHA-256 %q is not %d hexadecimal digits", v.SHA256, 2*sha256.Size)
		}
		c.digest = d
	}
	if head && c.needsBody() {
		return c, errors.New("verify: an answer to HEAD has no body to verify")
	}
	return c, nil
}

// needsBody reports whether c reads the body.
func (c *check) needsBody() bool {
	return c.contains != nil || c.length >= 0 || c.digest != nil
}

// headOK checks the status and the header fields of a raw header block.
func (c *check) headOK(status int, head []byte) bool {
	if c.status != 0 && status != c.status {
		return false
	}
	for _, h := range c.header {
		if !headHas(head, h) {
			return false
		}
	}
	return true
}

// fieldsOK is headOK for a header that a library has parsed.
func (c *check) fieldsOK(status int, header http.Header) bool {
	if c.status != 0 && status != c.status {
		return false
	}
	for _, h := range c.header {
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

// stream checks a body as it comes. It is made ready by reset and may be used
// again after another.
type stream struct {
	c     *check
	n     int64
	sum   hash.Hash // nil until a digest is asked for
	tail  []byte    // the end of what came, one byte shorter than what is looked for
	found bool
}

// reset begins to check a body by c.
func (st *stream) reset(c *check) {
	st.c, st.n, st.tail, st.found = c, 0, st.tail[:0], c.contains == nil
	if c.digest == nil {
		return
	}
	if st.sum == nil {
		st.sum = sha256.New()
	}
	st.sum.Reset()
}

// Write takes the next bytes of the body, which it does not keep. It never
// fails.
func (st *stream) Write(p []byte) (int, error) {
	st.n += int64(len(p))
	if st.c.digest != nil {
		st.sum.Write(p)
	}
	if !st.found {
		st.search(p)
	}
	return len(p), nil
}

// search looks for the substring in p and across the border before it.
func (st *stream) search(p []byte) {
	want := st.c.contains
	border := append(st.tail, p[:min(len(p), len(want)-1)]...)
	if st.found = bytes.Contains(border, want) || bytes.Contains(p, want); st.found {
		return
	}
	if len(p) >= len(want)-1 {
		border = append(st.tail[:0], p[len(p)-(len(want)-1):]...)
	}
	st.tail = append(st.tail[:0], border[max(0, len(border)-(len(want)-1)):]...)
}

// ok reports whether the body written since reset is correct; the status and
// the header are the caller's to check.
func (st *stream) ok() bool {
	return st.found &&
		(st.c.length < 0 || st.n == st.c.length) &&
		(st.c.digest == nil || bytes.Equal(st.sum.Sum(nil), st.c.digest))
}
