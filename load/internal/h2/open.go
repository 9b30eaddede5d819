package h2

import "math/bits"

// leastSlots is how many slots a connection's first streams share; a power of two.
const leastSlots = 8

// openStreams are a connection's streams by their numbers, in a table whose slots are at
// most half taken: a stream lies in the slot that its number hashes to, or behind it with
// none free between.
//
// Note: a map is plainer. BenchmarkAnswers, which looks a stream up twice, shows what it
// costs.
type openStreams struct {
	slots []*Stream
	n     int
}

// home is the slot that id hashes to. Numbers follow each other, so that they would lie side
// by side without a hash.
func (o *openStreams) home(id uint32) int {
	return int(id * 0x9e3779b1 >> (32 - bits.Len32(uint32(len(o.slots)-1))))
}

func (o *openStreams) after(i int) int { return (i + 1) & (len(o.slots) - 1) }

// find is the stream with that number; nil if there is none.
func (o *openStreams) find(id uint32) *Stream {
	if o.n == 0 {
		return nil
	}
	for i := o.home(id); ; i = o.after(i) {
		if s := o.slots[i]; s == nil || s.id == id {
			return s
		}
	}
}

// add puts s in, whose number is not among the others'.
func (o *openStreams) add(s *Stream) {
	if 2*o.n >= len(o.slots) {
		before := o.slots
		o.slots, o.n = make([]*Stream, max(leastSlots, 2*len(before))), 0
		for _, s := range before {
			if s != nil {
				o.add(s)
			}
		}
	}
	i := o.home(s.id)
	for o.slots[i] != nil {
		i = o.after(i)
	}
	o.slots[i] = s
	o.n++
}

// remove takes s out, and moves those up that lie behind their slots for it.
func (o *openStreams) remove(s *Stream) {
	free := o.home(s.id)
	for o.slots[free] != s {
		free = o.after(free)
	}
	mask := len(o.slots) - 1
	for i := o.after(free); o.slots[i] != nil; i = o.after(i) {
		if (i-o.home(o.slots[i].id))&mask >= (i-free)&mask {
			o.slots[free], free = o.slots[i], i
		}
	}
	o.slots[free] = nil
	o.n--
}

// all are the streams, in no order.
func (o *openStreams) all() []*Stream {
	all := make([]*Stream, 0, o.n)
	for _, s := range o.slots {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
}
