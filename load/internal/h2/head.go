package h2

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/net/http2/hpack"
)

// answer is what a header block says, or a trailer.
type answer struct {
	block  []byte // that said it
	fields []hpack.HeaderField
	status int   // 0: none
	length int64 // Content-Length; negative: none
	bad    error // what makes it malformed
}

// kept is how many header blocks are remembered.
const kept = 4

// decoder reads header blocks.
//
// Servers repeat themselves: a block that leaves the table as it is means the same
// when it comes again, until another changes the table. BenchmarkAnswers shows what
// comparing instead of decoding saves.
type decoder struct {
	hpack *hpack.Decoder
	seen  [kept]answer // since the table last changed
	next  int          // of seen, to be taken
	now   *answer      // that is being decoded
	size  int
}

func newDecoder() *decoder {
	d := &decoder{}
	d.hpack = hpack.NewDecoder(tableSize, d.field)
	d.hpack.SetMaxStringLength(maxHead)
	return d
}

// decode returns what block says, until the next call. An error is the connection's, for
// the table is lost.
func (d *decoder) decode(block []byte) (*answer, error) {
	for i := range d.seen {
		if a := &d.seen[i]; len(a.block) > 0 && string(a.block) == string(block) {
			return a, nil
		}
	}
	a := &d.seen[d.next]
	d.now, d.size = a, 0
	*a = answer{block: a.block[:0], fields: a.fields[:0], length: -1}
	_, err := d.hpack.Write(block)
	if closed := d.hpack.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, breach(codeCompression, "a header cannot be decoded: %v", err)
	}
	if alters(block) {
		for i := range d.seen {
			d.seen[i].block = d.seen[i].block[:0]
		}
	} else {
		a.block = append(a.block, block...)
		d.next = (d.next + 1) % kept
	}
	return a, nil
}

// field takes one field of the block.
func (d *decoder) field(f hpack.HeaderField) {
	a := d.now
	if d.size += int(f.Size()); d.size > maxHead {
		a.bad = fmt.Errorf("the header is longer than %d bytes", maxHead)
		return
	}
	if err := a.add(f); err != nil && a.bad == nil {
		a.bad = err
	}
}

// add takes f up, or refuses it (RFC 9113, section 8.2).
func (a *answer) add(f hpack.HeaderField) error {
	switch {
	case f.Name == ":status":
		if a.status != 0 || len(a.fields) > 0 {
			return errors.New("the header's status is not its first field, and only one")
		}
		status, err := strconv.Atoi(f.Value)
		if err != nil || len(f.Value) != 3 || status < 100 || status > 599 {
			return fmt.Errorf("status %q is outside 100 to 599", f.Value)
		}
		a.status = status
		return nil
	case !isName(f.Name) || !isText(f.Value):
		return errors.New("a field's name is no lower-case token, or its value holds a control character")
	case f.Name == "content-length":
		n, err := strconv.ParseUint(f.Value, 10, 63)
		if err != nil || a.length >= 0 {
			return errors.New("the Content-Length is not one number")
		}
		a.length = int64(n)
	}
	a.fields = append(a.fields, f)
	return nil
}

// isName reports whether s is a field's name as HTTP/2 has them.
func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == ':' || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return s != ""
}

// isText reports whether s has no control characters but the tab.
func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// alters reports whether a block, which could be decoded, changes the table.
func alters(b []byte) bool {
	for len(b) > 0 {
		switch {
		case b[0]&0x80 != 0: // indexed
			_, b = cutInt(b, 7)
		case b[0]&0xc0 == 0x40, b[0]&0xe0 == 0x20: // to be indexed, or a new size
			return true
		default: // a literal
			var name int
			if name, b = cutInt(b, 4); name == 0 {
				b = cutString(b)
			}
			b = cutString(b)
		}
	}
	return false
}

// cutInt cuts an integer with a prefix of so many bits off b (RFC 7541, section 5.1).
func cutInt(b []byte, bits int) (v int, rest []byte) {
	most := 1<<bits - 1
	if v = int(b[0]) & most; v < most {
		return v, b[1:]
	}
	for i, shift := 1, 0; i < len(b) && shift < 32; i, shift = i+1, shift+7 {
		v += int(b[i]&0x7f) << shift
		if b[i]&0x80 == 0 {
			return v, b[i+1:]
		}
	}
	return v, nil
}

// cutString cuts a string off b (RFC 7541, section 5.2).
func cutString(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	n, rest := cutInt(b, 7)
	return rest[min(n, len(rest)):]
}

// appendInt appends v with a prefix of so many bits, beside which first has the others.
func appendInt(dst []byte, first byte, bits, v int) []byte {
	most := 1<<bits - 1
	if v < most {
		return append(dst, first|byte(v))
	}
	dst = append(dst, first|byte(most))
	for v -= most; v >= 0x80; v >>= 7 {
		dst = append(dst, byte(v)|0x80)
	}
	return append(dst, byte(v))
}
