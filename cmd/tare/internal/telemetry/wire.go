package telemetry

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
)

// series are those of remote write that were sent last.
type series struct {
	more []Label         // of each that has none of the name
	sent map[string]bool // by their labels, encoded: sent with the latest figures
	last int64           // when these were so, in milliseconds
}

// mostSeries are in one request, as Prometheus itself sends them unless told otherwise.
const mostSeries = 2000

// requests are figures as bodies of requests. Series that were sent before and are not among
// them get a stale marker. It is an error if the figures are not later than those before.
func (s *series) requests(f *Figures) (bodies [][]byte, err error) {
	at := f.At.UnixMilli()
	if at <= s.last {
		if len(f.Families) > 0 {
			return nil, errors.New("the clock was set back: figures of a time that was sent already are not written")
		}
		at = s.last + 1
	}
	s.last = at
	now := map[string]bool{}
	var body []byte
	n := 0
	add := func(labels string, value uint64) {
		one := appendField(make([]byte, 0, len(labels)+24), 2, encodeSample(value, at))
		body = appendField(body, 1, labels+string(one))
		if n++; n == mostSeries {
			bodies = append(bodies, pack(body))
			body, n = nil, 0
		}
	}
	for k := range f.Families {
		for sample := range f.Families[k].samples() {
			if labels := s.encodeLabels(&sample); !now[labels] {
				now[labels] = true
				add(labels, math.Float64bits(sample.value))
			}
		}
	}
	const stale = 0x7ff0000000000002 // the NaN that says so
	for labels := range s.sent {
		if !now[labels] {
			add(labels, stale)
		}
	}
	s.sent = now
	if n > 0 {
		bodies = append(bodies, pack(body))
	}
	return bodies, nil
}

// The messages of remote write 1.0, in the encoding of protocol buffers:
//
//	WriteRequest { repeated TimeSeries timeseries = 1 }
//	TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2 }
//	Label        { string name = 1; string value = 2 }
//	Sample       { double value = 1; int64 timestamp = 2 } // milliseconds

// encodeLabels are a series's labels as the protocol wants them: its name among them, in
// order, none empty, no name twice.
func (s *series) encodeLabels(of *sample) string {
	all := slices.Concat([]Label{{"__name__", of.name}}, of.labels, s.more)
	all = slices.DeleteFunc(all, func(l Label) bool { return l.Value == "" })
	slices.SortStableFunc(all, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b Label) bool { return a.Name == b.Name })
	var out, part []byte
	for _, l := range all {
		part = appendField(part[:0], 1, l.Name)
		part = appendField(part, 2, strings.ToValidUTF8(l.Value, "\ufffd"))
		out = appendField(out, 1, string(part))
	}
	return string(out)
}

// Types of fields.
const (
	varint  = 0
	fixed64 = 1
	counted = 2 // a length, and as many bytes
)

func encodeSample(value uint64, at int64) string {
	b := binary.LittleEndian.AppendUint64([]byte{1<<3 | fixed64}, value)
	return string(binary.AppendUvarint(append(b, 2<<3|varint), uint64(at)))
}

func appendField(b []byte, number byte, value string) []byte {
	b = append(b, number<<3|counted)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// pack compresses a body to a block of snappy's (format_description.txt of its
// repository): its length, then by turns bytes as they are and copies of what came before,
// at most 64 KiB back. Bodies repeat the names and values of labels in every series.
//
// Note: a library does the same a few times faster, and would be the command's for this
// alone.
func pack(b []byte) []byte {
	const bits, farthest = 14, 1<<16 - 1
	out := binary.AppendUvarint(make([]byte, 0, len(b)/4+64), uint64(len(b)))
	var latest [1 << bits]int32 // by the hash of four bytes: where they were, and one
	plain, at := 0, 0           // what is before plain has been written
	for at+4 <= len(b) {
		four := binary.LittleEndian.Uint32(b[at:])
		hash := four * 2654435761 >> (32 - bits)
		was := int(latest[hash]) - 1
		latest[hash] = int32(at + 1)
		if was < 0 || at-was > farthest || binary.LittleEndian.Uint32(b[was:]) != four {
			at++
			continue
		}
		n := 4
		for at+n < len(b) && b[was+n] == b[at+n] {
			n++
		}
		out = appendCopy(appendPlain(out, b[plain:at]), at-was, n)
		at += n
		plain = at
	}
	return appendPlain(out, b[plain:])
}

// appendPlain appends bytes as they are.
func appendPlain(out, b []byte) []byte {
	const short, longest = 60, 1 << 16
	for len(b) > 0 {
		n := min(len(b), longest)
		if n <= short {
			out = append(out, byte(n-1)<<2)
		} else {
			out = binary.LittleEndian.AppendUint16(append(out, 61<<2), uint16(n-1))
		}
		out = append(out, b[:n]...)
		b = b[n:]
	}
	return out
}

// appendCopy appends n bytes that were so many bytes before.
func appendCopy(out []byte, before, n int) []byte {
	const longest = 64
	for n > 0 {
		k := min(n, longest)
		out = binary.LittleEndian.AppendUint16(append(out, byte(k-1)<<2|2), uint16(before))
		n -= k
	}
	return out
}
