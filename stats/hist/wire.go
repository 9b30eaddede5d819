package hist

import (
	"encoding/binary"
	"errors"
	"math"
)

// Append appends h in a form of its own, which MergeAppended reads back whole: counters,
// extremes, sum and clamped values. It is for processes of one version that exchange
// histograms; files are written by WriteLog. A histogram of the usual latencies takes some
// kilobytes, an empty one a byte.
func (h *Hist) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, h.n)
	if h.n == 0 {
		return b
	}
	for _, v := range []uint64{uint64(h.min), uint64(h.max), h.clamped, h.sum.hi, h.sum.lo} {
		b = binary.AppendUvarint(b, v)
	}
	return h.appendCounters(b)
}

// MergeAppended adds the histogram that Append wrote, of which b is the whole. If b is not
// one, h stays as it is. It allocates nothing but octaves that h lacks.
func (h *Hist) MergeAppended(b []byte) error {
	o, counts, err := readTotals(b)
	if err != nil || o.n == 0 {
		return err
	}
	if o.n > math.MaxInt64-h.n {
		return errors.New("counters add up to more than 2⁶³−1")
	}
	if err := o.checkTotals(counts, h.addCount); err != nil {
		// What was added up to the mistake is taken off again.
		_ = eachCounter(counts, func(i int, n uint64) { h.addCount(i, -n) })
		return err
	}
	h.addTotals(&o)
	return nil
}

// addCount adds n to the counter of bucket i.
func (h *Hist) addCount(i int, n uint64) {
	to := h.octaves[i>>halfBits]
	if to == nil {
		to = h.grow(i)
	}
	to[i&(half-1)] += n
}

// readTotals reads what stands before the counters.
func readTotals(b []byte) (o Hist, counts []byte, err error) {
	var low, high uint64
	for i, into := range []*uint64{&o.n, &low, &high, &o.clamped, &o.sum.hi, &o.sum.lo} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return o, nil, errors.New("ends within its totals")
		}
		*into, b = v, b[n:]
		if i == 0 && v == 0 {
			if len(b) > 0 {
				return o, nil, errors.New("goes on behind an empty histogram")
			}
			return o, nil, nil
		}
	}
	if low > high || high > uint64(Highest) {
		return o, nil, errors.New("has extremes out of order or above an hour")
	}
	o.min, o.max = int64(low), int64(high)
	return o, b, nil
}

// checkTotals holds the totals of a histogram against its counters, which it hands on.
func (o *Hist) checkTotals(counts []byte, add func(bucket int, n uint64)) error {
	var n uint64
	var least, most sum
	first, last, top := -1, 0, uint64(0)
	err := eachCounter(counts, func(i int, c uint64) {
		if first < 0 {
			first = i
		}
		lo, hi := bounds(i)
		least.add(uint64(lo), c)
		most.add(uint64(hi), c)
		last, top = i, c
		n += c
		add(i, c)
	})
	switch {
	case err != nil:
		return err
	case n != o.n:
		return errors.New("has a total that is not its counters'")
	case first != index(o.min) || last != index(o.max):
		return errors.New("has extremes outside its outermost buckets")
	case o.clamped > 0 && (o.clamped > top || o.max != Highest):
		return errors.New("has more clamped values than long ones")
	case !most.minus(o.sum) || !o.sum.atLeast(least):
		return errors.New("has a sum that its counters cannot have")
	}
	return nil
}

// atLeast reports whether s is no less than t.
func (s sum) atLeast(t sum) bool { return s.minus(t) }
