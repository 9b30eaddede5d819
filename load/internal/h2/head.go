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
	use    use    // that it makes of the table
	fields []hpack.HeaderField
	status int   // 0: none
	length int64 // Content-Length; negative: none
	bad    error // what makes it malformed
}

const (
	// kept is how many header blocks are remembered.
	kept = 4
	// mostLate is how many blocks matter to a table of which each added to it: an entry takes
	// 32 bytes at least (RFC 7541, section 4.1).
	mostLate = tableSize / 32
)

// decoder reads header blocks.
//
// Servers repeat themselves. A block that refers to nothing in the table means the same
// whenever it comes, and one that refers to it until the table changes. What a block adds
// that is known is added late: when one comes that is not.
//
// Note: nginx refers to nothing in the table and adds each answer's fields to it. To decode
// was most of what an answer took; BenchmarkAnswers shows what comparing saves.
type decoder struct {
	hpack *hpack.Decoder
	seen  [kept]answer
	next  int     // of seen, to be taken
	now   *answer // that is being decoded; nil: its fields are known
	size  int

	late [mostLate]uint8 // the last of seen that have come again and are not in the table
	n    int             // how many these were, more than late holds perhaps
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
			if a.use.adds {
				d.late[d.n%mostLate] = uint8(i)
				d.n++
				d.changed()
			}
			return a, nil
		}
	}
	if err := d.catchUp(); err != nil {
		return nil, err
	}
	a := &d.seen[d.next]
	d.now, d.size = a, 0
	*a = answer{block: a.block[:0], fields: a.fields[:0], length: -1}
	if err := d.write(block); err != nil {
		return nil, err
	}
	a.use = usage(block)
	if a.use.adds || a.use.resizes {
		d.changed()
	}
	if !a.use.resizes && !(a.use.adds && a.use.refers) {
		a.block = append(a.block, block...)
		d.next = (d.next + 1) % kept
	}
	return a, nil
}

// write has the table follow a block.
func (d *decoder) write(block []byte) error {
	_, err := d.hpack.Write(block)
	if closed := d.hpack.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return breach(codeCompression, "a header cannot be decoded: %v", err)
	}
	return nil
}

// catchUp has the table follow the blocks that came again.
func (d *decoder) catchUp() error {
	d.now = nil
	for i := max(0, d.n-mostLate); i < d.n; i++ {
		if err := d.write(d.seen[d.late[i%mostLate]].block); err != nil {
			return err
		}
	}
	d.n = 0
	return nil
}

// changed forgets the blocks that refer to the table, which has changed.
func (d *decoder) changed() {
	for i := range d.seen {
		if a := &d.seen[i]; a.use.refers {
			a.block = a.block[:0]
		}
	}
}

// field takes one field of the block.
func (d *decoder) field(f hpack.HeaderField) {
	a := d.now
	if a == nil {
		return
	}
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

// use is what a block has to do with the table.
type use struct {
	refers  bool // to an entry of it
	adds    bool // to it
	resizes bool
}

// usage is that of a block which could be decoded.
func usage(b []byte) (u use) {
	for len(b) > 0 {
		var at int
		switch {
		case b[0]&0x80 != 0: // a whole field
			at, b = cutInt(b, 7)
		case b[0]&0xe0 == 0x20: // no field
			u.resizes = true
			_, b = cutInt(b, 5)
		default: // a value, and a name if its is nowhere
			bits := 4
			if b[0]&0x40 != 0 {
				u.adds, bits = true, 6
			}
			if at, b = cutInt(b, bits); at == 0 {
				b = cutString(b)
			}
			b = cutString(b)
		}
		u.refers = u.refers || at >= firstOwn
	}
	return u
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
