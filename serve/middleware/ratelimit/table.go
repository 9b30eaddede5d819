package ratelimit

import (
	"sync"
	"sync/atomic"
)

// table has the states of keys, by their hashes. It never grows: of keys that hash to
// the same bucket the one that has rested longest gives way to a new one.
//
// A key whose state is at rest (all it used has come back) is as good as absent, so that
// its slot is free without anybody clearing up.
type table struct {
	buckets []bucket
	locks   []lock // of the buckets i with i mod len(locks) = own index
	evicted atomic.Uint64
}

// ways is how many keys a bucket holds: eight slots of 24 bytes are three cache lines.
const ways = 8

type bucket [ways]slot

type slot struct {
	key  uint64 // hash; 0: never used
	rest int64  // when the state is at rest, as what was used has come back
	more uint64 // of the law's
}

// lock has a cache line to itself.
type lock struct {
	sync.Mutex
	_ [56]byte
}

// newTable returns a table for about so many keys in use at a time.
func newTable(keys int) *table {
	n := 1
	for n*ways < 2*keys { // half full: of a million keys at random about one in 10⁴ gives way
		n *= 2
	}
	return &table{buckets: make([]bucket, n), locks: make([]lock, min(n, 1024))}
}

// update has the law decide on n requests by the slot of a key, which is zero but for its key
// if that was absent or at rest.
func (t *table) update(hash uint64, now int64, by law, n uint32) Result {
	hash = max(hash, 1)
	i := (hash >> 3) & uint64(len(t.buckets)-1)
	l := &t.locks[i&uint64(len(t.locks)-1)]
	l.Lock()
	defer l.Unlock()
	s := t.buckets[i].find(hash)
	switch {
	case s.key != hash:
		if s.rest > now {
			t.evicted.Add(1)
		}
		*s = slot{key: hash}
	case s.rest <= now:
		*s = slot{key: hash}
	}
	return by.take(s, now, n)
}

// find returns the slot of a key or, if it has none, the one that is to be its: the one
// at rest for longest, or next to be.
func (b *bucket) find(hash uint64) *slot {
	oldest := &b[0]
	for i := range b {
		s := &b[i]
		if s.key == hash {
			return s
		}
		if s.rest < oldest.rest {
			oldest = s
		}
	}
	return oldest
}
