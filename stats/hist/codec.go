package hist

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// HdrHistogram's V2 encoding: a cookie and a length, then deflated a header and
// the counters. Writers set the cookies' word size, readers ignore it.
const (
	innerCookie = 0x1c849303
	outerCookie = 0x1c849304
	wordSize    = 0x10
	anyWordSize = 0xf0

	outerSize  = 8  // cookie, length of what follows
	headerSize = 40 // cookie, length of counters, offset, digits, lowest, highest, ratio
	digits     = 3
	counters   = octaves * half
	// The longest payload: every counter in its longest form.
	maxPayload = headerSize + counters*maxVarint
)

// encode is h in V2 form, base64.
func (h *Hist) encode() (string, error) {
	be := binary.BigEndian
	payload := h.appendCounters(make([]byte, headerSize))
	be.PutUint32(payload, innerCookie|wordSize)
	be.PutUint32(payload[4:], uint32(len(payload)-headerSize))
	be.PutUint32(payload[12:], digits)
	be.PutUint64(payload[16:], 1)
	be.PutUint64(payload[24:], uint64(Highest))
	be.PutUint64(payload[32:], math.Float64bits(1)) // values are what they say

	var outer bytes.Buffer
	outer.Write(make([]byte, outerSize))
	z := zlib.NewWriter(&outer)
	if _, err := z.Write(payload); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	b := outer.Bytes()
	be.PutUint32(b, outerCookie|wordSize)
	be.PutUint32(b[4:], uint32(len(b)-outerSize))
	return base64.StdEncoding.EncodeToString(b), nil
}

// appendCounters appends the counters up to the last one in use; a negative
// number stands for so many zeros.
func (h *Hist) appendCounters(b []byte) []byte {
	next := 0
	for k := range h.Buckets() {
		i := index(k.Lo)
		switch zeros := i - next; {
		case zeros == 1:
			b = appendVarint(b, 0)
		case zeros > 1:
			b = appendVarint(b, -int64(zeros))
		}
		b = appendVarint(b, int64(k.Count))
		next = i + 1
	}
	if next == 0 {
		return appendVarint(b, 0) // readers expect a counter
	}
	return b
}

// decode reads what encode or another HdrHistogram wrote.
func decode(text string) (*Hist, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	if len(raw) < outerSize || binary.BigEndian.Uint32(raw)&^anyWordSize != outerCookie {
		return nil, errors.New("not a compressed V2 histogram")
	}
	deflated, size := raw[outerSize:], binary.BigEndian.Uint32(raw[4:])
	if uint64(size) > uint64(len(deflated)) {
		return nil, fmt.Errorf("cut off after %d of %d bytes", len(deflated), size)
	}
	payload, err := inflate(deflated[:size])
	if err != nil {
		return nil, err
	}
	if err := checkHeader(payload); err != nil {
		return nil, err
	}
	h := New()
	// The extremes and the sum become those of the buckets.
	if err := eachCounter(payload[headerSize:], h.addBucket); err != nil {
		return nil, err
	}
	return h, nil
}

func inflate(b []byte) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	payload, err := io.ReadAll(io.LimitReader(z, maxPayload+1))
	if err != nil {
		return nil, err
	}
	if len(payload) > maxPayload {
		return nil, fmt.Errorf("inflates to more than the %d bytes of the longest histogram", maxPayload)
	}
	return payload, nil
}

// checkHeader checks that the counters are those of this package. How high a
// histogram can count changes nothing about where the counters lie.
func checkHeader(payload []byte) error {
	be := binary.BigEndian
	if len(payload) < headerSize || be.Uint32(payload)&^anyWordSize != innerCookie {
		return errors.New("not a V2 payload")
	}
	if n := len(payload) - headerSize; uint64(be.Uint32(payload[4:])) != uint64(n) {
		return fmt.Errorf("payload of %d bytes says that it has %d", n, be.Uint32(payload[4:]))
	}
	lowest, d := int64(be.Uint64(payload[16:])), be.Uint32(payload[12:])
	if lowest > 1 || d != digits {
		return fmt.Errorf("counts from %d with %d digits; only histograms from 1 with %d digits are read", lowest, d, digits)
	}
	if r := math.Float64frombits(be.Uint64(payload[32:])); r != 1 {
		return fmt.Errorf("values are scaled by %v; only whole ones are read", r)
	}
	return nil
}

// eachCounter calls add for every counter above 0, in order, up to a mistake.
func eachCounter(b []byte, add func(bucket int, n uint64)) error {
	i, total := 0, uint64(0)
	for len(b) > 0 {
		// Nearly all numbers are of one byte. varint, which the compiler does not inline, takes
		// most of the time without this line (BenchmarkMergeAppended).
		v, n := int64(b[0]>>1)^-int64(b[0]&1), 1
		if b[0] >= 0x80 {
			v, n = varint(b)
		}
		if n == 0 {
			return errors.New("ends within a counter")
		}
		b = b[n:]
		switch {
		case v < -int64(counters-i) || v >= 0 && i >= counters:
			return fmt.Errorf("more than the %d counters up to an hour", counters)
		case v < 0:
			i -= int(v)
			continue
		case uint64(v) > math.MaxInt64-total:
			return errors.New("counters add up to more than 2⁶³−1")
		case v > 0:
			add(i, uint64(v))
			total += uint64(v)
		}
		i++
	}
	return nil
}

// addBucket adds n > 0 values to bucket i, above all buckets in use.
func (h *Hist) addBucket(i int, n uint64) {
	lo, hi := bounds(i)
	o := h.octaves[i>>halfBits]
	if o == nil {
		o = h.grow(i)
	}
	o[i&(half-1)] = n
	if h.n == 0 {
		h.min = lo
	}
	h.max = hi
	h.n += n
	h.sum.add(uint64(lo+(hi-lo)/2), n)
}

// maxVarint is the length of the longest number: eight bytes of seven bits and
// one of eight.
const maxVarint = 9

// appendVarint appends v in the format's form of ZigZag LEB128, whose ninth
// byte has no continuation bit.
func appendVarint(b []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	for range maxVarint - 1 {
		if u < 0x80 {
			return append(b, byte(u))
		}
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}

// varint reads what appendVarint wrote; n is 0 when b ends within it.
func varint(b []byte) (v int64, n int) {
	var u uint64
	for i, c := range b[:min(len(b), maxVarint)] {
		last := c < 0x80 || i == maxVarint-1
		if c < 0x80 || i < maxVarint-1 {
			c &= 0x7f
		}
		u |= uint64(c) << (7 * i)
		if last {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	return 0, 0
}
