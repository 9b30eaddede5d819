package h2

import "golang.org/x/net/http2/hpack"

// firstOwn is the index of the table's newest field: those before are RFC 7541's own.
const firstOwn = 62

// Field is a field of a request's header, of which pseudo-header fields come first.
type Field struct{ Name, Value string }

// Encoder encodes the headers of the requests that connections carry. A connection's first
// header block puts the fields that all requests have into the server's table; the next
// refer to them. It does not change and is safe for concurrent use.
//
// Note: to encode each request by a table of what its connection has sent costs a search
// a field.
type Encoder struct {
	static map[Field]int // with an empty value for a name's first
	shared map[Field]int // places in the order in which they come
	need   int
}

// NewEncoder is an encoder for requests whose fields, but for those whose value varies, are
// the given.
func NewEncoder(requests [][]Field) *Encoder {
	e := &Encoder{static: staticTable()}
	counts := map[Field]int{} // of requests that have it; too many for one that has it twice
	for _, fields := range requests {
		for i, f := range fields {
			counts[f]++
			for _, g := range fields[:i] {
				if f == g {
					counts[f] = len(requests) + 1
				}
			}
		}
	}
	var order []Field
	for _, f := range requests[0] {
		size := len(f.Name) + len(f.Value) + 32 // RFC 7541, section 4.1
		if counts[f] == len(requests) && e.static[f] == 0 && e.need+size <= tableSize {
			order = append(order, f)
			e.need += size
		}
	}
	e.share(order, requests)
	return e
}

// share has the fields in order be shared, if all requests have them in that.
func (e *Encoder) share(order []Field, requests [][]Field) {
	e.shared = map[Field]int{}
	for i, f := range order {
		e.shared[f] = i
	}
	for _, fields := range requests {
		next := 0
		for _, f := range fields {
			at, ok := e.shared[f]
			if ok && at != next {
				e.shared, e.need = nil, 0
				return
			}
			if ok {
				next++
			}
		}
	}
}

// Need is how many bytes of a server's table the shared fields take.
func (e *Encoder) Need() int { return e.need }

// Append appends f.
func (e *Encoder) Append(dst []byte, f Field, t Table) []byte {
	if i := e.static[f]; i > 0 && f.Value != "" {
		return appendInt(dst, 0x80, 7, i)
	}
	at, shared := e.shared[f]
	switch {
	case shared && t == Kept:
		return appendInt(dst, 0x80, 7, firstOwn+len(e.shared)-1-at)
	case shared && t == Fill:
		return AppendValue(e.name(dst, 0x40, 6, f.Name), f.Value)
	}
	return AppendValue(e.AppendName(dst, f.Name), f.Value)
}

// AppendName appends the beginning of a field that goes into no table: AppendValue is to
// follow.
func (e *Encoder) AppendName(dst []byte, name string) []byte { return e.name(dst, 0, 4, name) }

func (e *Encoder) name(dst []byte, first byte, bits int, name string) []byte {
	i := e.static[Field{Name: name}]
	dst = appendInt(dst, first, bits, i)
	if i == 0 {
		dst = AppendValue(dst, name)
	}
	return dst
}

// AppendValue appends a string, in whichever form is shorter.
func AppendValue(dst []byte, v string) []byte {
	if n := int(hpack.HuffmanEncodeLength(v)); n < len(v) {
		return hpack.AppendHuffmanString(appendInt(dst, 0x80, 7, n), v)
	}
	return append(appendInt(dst, 0, 7, len(v)), v...)
}

// staticTable is RFC 7541's table, by field, and by name alone.
func staticTable() map[Field]int {
	table := map[Field]int{}
	i := 0
	d := hpack.NewDecoder(0, func(f hpack.HeaderField) {
		for _, key := range []Field{{f.Name, f.Value}, {Name: f.Name}} {
			if table[key] == 0 {
				table[key] = i
			}
		}
	})
	for i = 1; i < firstOwn; i++ {
		d.Write([]byte{0x80 | byte(i)})
	}
	return table
}
