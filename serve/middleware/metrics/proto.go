package metrics

import (
	"encoding/binary"
	"math"
	"strings"
)

// The format that has native histograms: messages io.prometheus.client.MetricFamily, each behind
// its length. Fields are numbered as in that protocol's metrics.proto.
const (
	protobuf     = "application/vnd.google.protobuf"
	protobufType = protobuf + "; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// protoKinds are the kinds as numbers, and protoValues the fields with their values.
var (
	protoKinds  = map[string]uint64{counter: 0, gauge: 1, histogram: 4}
	protoValues = map[string]int{counter: 3, gauge: 2, histogram: 7}
)

// proto returns the page in that format.
func (p *page) proto() []byte {
	var b []byte
	for _, f := range p.families {
		var m message
		m.text(1, f.name)
		m.text(2, f.help)
		m.uint(3, protoKinds[f.kind])
		for _, h := range f.whole {
			p.metric(&m, h.labels, protoValues[f.kind], h.write)
		}
		if f.kind != histogram {
			for _, s := range f.samples {
				p.metric(&m, s.labels, protoValues[f.kind], func(value *message) { value.double(1, s.value) })
			}
		}
		b = append(binary.AppendUvarint(b, uint64(len(m))), m...)
	}
	return b
}

// metric writes a metric of a family: its labels, and its value as a field of it.
func (p *page) metric(family *message, labels []Label, field int, value func(*message)) {
	family.within(4, func(m *message) {
		m.labels(p.constant)
		m.labels(labels)
		m.within(field, value)
	})
}

// write writes the histogram: its buckets with bounds, and behind them the native ones where
// it was counted as such, for Prometheus keeps either or both. The count is that of the native
// ones, which it holds to be the same; requests may be about to change them.
func (h *whole) write(m *message) {
	if !math.IsNaN(h.r.sum) {
		m.double(2, h.r.sum)
	}
	counted := h.r.counts
	if h.r.native != nil {
		counted = h.r.native
	}
	all := uint64(0)
	for _, n := range counted {
		all += n
	}
	m.uint(1, all)
	h.writeClassic(m, all)
	if h.r.native == nil {
		return
	}
	m.sint(5, nativeSchema)
	m.double(6, math.Exp2(lowest))
	m.uint(7, h.r.native[0])
	writeNative(m, h.r.native[1:])
	for _, e := range h.r.exemplars {
		if e != nil {
			m.within(16, e.write)
		}
	}
}

// writeClassic writes buckets with their bounds, of which the last one holds all.
func (h *whole) writeClassic(m *message, all uint64) {
	below := uint64(0)
	for i, n := range h.r.counts {
		below = min(below+n, all)
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		} else {
			below = all
		}
		m.within(3, func(bucket *message) {
			bucket.uint(1, below)
			bucket.double(2, bound)
			if len(h.r.exemplars) > 0 && h.r.exemplars[i] != nil {
				bucket.within(3, h.r.exemplars[i].write)
			}
		})
	}
}

// writeNative writes runs of buckets that are not empty: how far each begins behind the one
// before, how long it is, and by how much each bucket differs from the one before.
func writeNative(m *message, buckets []uint64) {
	const first = lowest*octave + 1 // the number of buckets[0]
	last, behind := int64(0), -first
	var deltas message
	for i := 0; i < len(buckets); i++ {
		from := i
		for ; i < len(buckets) && buckets[i] > 0; i++ {
			deltas.sint(13, int64(buckets[i])-last)
			last = int64(buckets[i])
		}
		if i > from {
			m.within(12, func(span *message) {
				span.sint(1, int64(from-behind))
				span.uint(2, uint64(i-from))
			})
			behind = i
		}
	}
	*m = append(*m, deltas...)
}

func (e *exemplar) write(m *message) {
	m.labels([]Label{{"trace_id", e.trace}})
	m.double(2, e.seconds)
	m.within(3, func(at *message) {
		at.uint(1, uint64(e.at.Unix()))
		at.uint(2, uint64(e.at.Nanosecond()))
	})
}

// message is a message of protocol buffers that is being written.
type message []byte

// Wire types.
const (
	varint = 0
	fixed  = 1 // 64 bits
	sized  = 2
)

func (m *message) tag(field, wire int) { *m = binary.AppendUvarint(*m, uint64(field<<3|wire)) }

func (m *message) uint(field int, v uint64) {
	m.tag(field, varint)
	*m = binary.AppendUvarint(*m, v)
}

func (m *message) sint(field int, v int64) { m.uint(field, uint64(v<<1)^uint64(v>>63)) }

func (m *message) double(field int, v float64) {
	m.tag(field, fixed)
	*m = binary.LittleEndian.AppendUint64(*m, math.Float64bits(v))
}

func (m *message) text(field int, s string) {
	s = strings.ToValidUTF8(s, "\ufffd")
	m.tag(field, sized)
	*m = append(binary.AppendUvarint(*m, uint64(len(s))), s...)
}

// within writes a message that is a field of m.
func (m *message) within(field int, write func(*message)) {
	var inner message
	write(&inner)
	m.tag(field, sized)
	*m = append(binary.AppendUvarint(*m, uint64(len(inner))), inner...)
}

// labels writes labels of a metric or of an exemplar.
func (m *message) labels(all []Label) {
	for _, l := range all {
		m.within(1, func(pair *message) {
			pair.text(1, l.Name)
			pair.text(2, l.Value)
		})
	}
}
