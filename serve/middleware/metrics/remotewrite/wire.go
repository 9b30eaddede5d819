package remotewrite

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/tarehq/tare/serve/middleware/metrics"
)

// encode returns samples as Prometheus' message WriteRequest in the format of protocol
// buffers:
//
//	WriteRequest { repeated TimeSeries timeseries = 1 }
//	TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2 }
//	Label        { string name = 1; string value = 2 }
//	Sample       { double value = 1; int64 timestamp = 2 }
//
// The time is in milliseconds since 1970.
func encode(samples []metrics.Sample, more []metrics.Label, at int64) []byte {
	var all, series, part []byte
	for _, s := range samples {
		series = series[:0]
		for _, l := range complete(s, more) {
			part = appendField(part[:0], 1, l.Name)
			part = appendField(part, 2, strings.ToValidUTF8(l.Value, "\ufffd"))
			series = appendField(series, 1, string(part))
		}
		part = append(part[:0], 1<<3|fixed64)
		part = binary.LittleEndian.AppendUint64(part, math.Float64bits(s.Value))
		part = append(part, 2<<3|varint)
		part = binary.AppendUvarint(part, uint64(at))
		series = appendField(series, 2, string(part))
		all = appendField(all, 1, string(series))
	}
	return all
}

// Types of fields.
const (
	varint  = 0
	fixed64 = 1
	counted = 2 // a length, and as many bytes
)

func appendField(b []byte, number byte, value string) []byte {
	b = append(b, number<<3|counted)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// longest is how many bytes a literal has whose length is written in two.
const longest = 1 << 16

// snappy returns b as a block of snappy's: its length, and literals of what it has. A
// compressor would find what is there twice; this finds nothing, in no time.
func snappy(b []byte) []byte {
	out := binary.AppendUvarint(make([]byte, 0, len(b)+16), uint64(len(b)))
	for len(b) > 0 {
		n := min(len(b), longest)
		const literal = 61 << 2 // a literal, its length less one in two bytes
		out = binary.LittleEndian.AppendUint16(append(out, literal), uint16(n-1))
		out = append(out, b[:n]...)
		b = b[n:]
	}
	return out
}
