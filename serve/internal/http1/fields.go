package http1

import (
	"net/http"
	"strings"
)

// reader goes through the lines of one section.
type reader struct {
	s       string
	i       int // where the next line starts
	lenient *Lenient
	h       http.Header
	vals    []string // values so far; its spare capacity is for the next
	seen    uint64   // bits of the known names that are in h
	left    int      // fields that may still come
}

// lineEnd reports whether a line may end at the control character at i, and
// where the next begins.
func (r *reader) lineEnd(i int) (next int, ok bool) {
	switch {
	case i+1 < len(r.s) && r.s[i] == '\r' && r.s[i+1] == '\n':
		return i + 2, true
	case i < len(r.s) && r.s[i] == '\n' && r.lenient.BareLF:
		return i + 1, true
	}
	return 0, false
}

// field reads one field line. The name is "" at the end of the section.
func (r *reader) field() (name string, id nameID, val string, err error) {
	if r.i >= len(r.s) {
		return "", 0, "", errLineEnd
	}
	switch r.s[r.i] {
	case '\r', '\n':
		if _, ok := r.lineEnd(r.i); !ok {
			return "", 0, "", errLineEnd
		}
		return "", 0, "", nil
	case ' ', '\t':
		return "", 0, "", errFold
	}
	if r.left--; r.left < 0 {
		return "", 0, "", errFields
	}
	rest := r.s[r.i:]
	colon := strings.IndexByte(rest, ':')
	if colon < 0 {
		return "", 0, "", errFieldName
	}
	if name, id = lookup(rest[:colon]); name == "" {
		return "", 0, "", errFieldName
	}
	r.i += colon + 1
	val, err = r.value()
	if err == nil && r.i < len(r.s) && (r.s[r.i] == ' ' || r.s[r.i] == '\t') {
		val, err = r.folded(val)
	}
	return name, id, val, err
}

// value reads to the end of the line.
func (r *reader) value() (string, error) {
	start := r.i
	end := control(r.s, start)
	for end < len(r.s) && r.s[end] == '\t' {
		end = control(r.s, end+1)
	}
	next, ok := r.lineEnd(end)
	if !ok {
		if end == len(r.s) || r.s[end] == '\n' {
			return "", errLineEnd
		}
		return "", errValue
	}
	r.i = next
	return TrimValue(r.s[start:end]), nil
}

// folded reads the lines that go on with val.
func (r *reader) folded(val string) (string, error) {
	if !r.lenient.Fold {
		return "", errFold
	}
	parts := []string{val}
	for r.i < len(r.s) && (r.s[r.i] == ' ' || r.s[r.i] == '\t') {
		more, err := r.value()
		if err != nil {
			return "", err
		}
		parts = append(parts, more)
	}
	return TrimValue(strings.Join(parts, " ")), nil
}

// add puts a field into the map. For a known name that was not seen yet, which
// is nearly every one, the map need not be asked.
func (r *reader) add(name string, id nameID, val string) {
	bit := uint64(1) << (id & 63)
	if id == otherName || r.seen&bit != 0 {
		if old, ok := r.h[name]; ok {
			r.h[name] = append(old, val)
			return
		}
	}
	r.seen |= bit
	n := len(r.vals)
	if n == cap(r.vals) {
		r.vals, n = make([]string, 0, 8), 0
	}
	r.vals = r.vals[:n+1]
	r.vals[n] = val
	r.h[name] = r.vals[n : n+1 : n+1]
}

// pragma adds what a Pragma field from before HTTP/1.1 means (RFC 9111,
// section 5.4).
func (r *reader) pragma() {
	const pragma, cacheControl = 1 << namePragma, 1 << nameCacheControl
	if r.seen&(pragma|cacheControl) == pragma && r.h["Pragma"][0] == "no-cache" {
		r.add("Cache-Control", nameCacheControl, "no-cache")
	}
}

// Fields reads a trailer section, s as [End] measured it, into h. Fields that have no business
// there are dropped. It returns an [*Error] if the section is malformed.
func Fields(s string, h http.Header, o *Options) error {
	r := reader{s: s, lenient: &o.Lenient, h: h, left: o.maxFields(), seen: ^uint64(0)}
	for {
		name, id, val, err := r.field()
		if err != nil || name == "" {
			return err
		}
		if TrailerAllowed(name) {
			r.add(name, id, val)
		}
	}
}

// TrailerAllowed reports whether a field, by its canonical name, may stand in a trailer section:
// not what frames, routes, authenticates or controls a message, since that is decided by before
// its body (RFC 9110, section 6.5.1).
func TrailerAllowed(name string) bool {
	switch name {
	case "Authorization", "Cache-Control", "Connection", "Content-Encoding", "Content-Length",
		"Content-Range", "Content-Type", "Cookie", "Expect", "Host", "Keep-Alive", "Max-Forwards",
		"Pragma", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Range",
		"Realm", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Www-Authenticate":
		return false
	}
	return !strings.HasPrefix(name, "If-")
}
