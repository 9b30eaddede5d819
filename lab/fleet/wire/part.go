package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/tarehq/tare/load"
)

// Part is what an agent saw since the part before. It travels as a row of variable-length
// numbers, since JSON would cost the coordinator of many agents more than all else. The
// response times of its slices stand behind it, in order.
type Part struct {
	Elapsed time.Duration // as in load.Snapshot, and so on
	Total   time.Duration
	Rate    float64
	Flight  int
	Counts  Tally
	Slices  []load.Slice
	Final   bool // it has slices only, the last ones
}

// append appends the part as it travels.
func (p *Part) append(b []byte) []byte {
	final := int64(0)
	if p.Final {
		final = 1
	}
	row := []int64{int64(p.Elapsed), int64(p.Total), int64(math.Float64bits(p.Rate)), int64(p.Flight), final}
	for _, n := range p.Counts {
		row = append(row, int64(n))
	}
	for _, s := range p.Slices {
		row = append(row, int64(s.At), int64(s.Answered), int64(s.Failed), int64(s.Dropped), int64(s.BytesIn), int64(s.P50), int64(s.P99), int64(s.Max))
	}
	for _, v := range row {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// readPart reads what append wrote, of which b is the whole.
func readPart(b []byte) (*Part, error) {
	cut := false
	next := func() int64 {
		v, n := binary.Varint(b)
		if n <= 0 {
			b, cut = nil, true
			return 0
		}
		b = b[n:]
		return v
	}
	p := &Part{Elapsed: time.Duration(next()), Total: time.Duration(next()), Rate: math.Float64frombits(uint64(next())), Flight: int(next()), Final: next() != 0}
	for i := range p.Counts {
		p.Counts[i] = uint64(next())
	}
	for len(b) > 0 {
		p.Slices = append(p.Slices, load.Slice{
			At: time.Duration(next()), Answered: uint64(next()), Failed: uint64(next()), Dropped: uint64(next()), BytesIn: uint64(next()),
			P50: time.Duration(next()), P99: time.Duration(next()), Max: time.Duration(next()),
		})
	}
	if cut {
		return nil, errors.New("a part ends within a number")
	}
	return p, nil
}
