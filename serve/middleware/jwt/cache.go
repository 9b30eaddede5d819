package jwt

import (
	"hash/maphash"
	"sync/atomic"
)

// cache has verified tokens. It never grows: in a full bucket a new token takes the
// place of another.
type cache struct {
	seed    maphash.Seed
	buckets []cacheBucket
	next    atomic.Uint32 // which of a full bucket gives way
}

const ways = 4

type cacheBucket [ways]atomic.Pointer[entry]

type entry struct {
	text       string
	token      *Token
	generation uint64 // of the keys
}

func newCache(tokens int) *cache {
	n := 1
	for n*ways < tokens {
		n *= 2
	}
	return &cache{seed: maphash.MakeSeed(), buckets: make([]cacheBucket, n)}
}

// hash is of the end of a token, which is of its signature: no two tokens of an issuer have the
// same. That one is looked up by all its bytes does not depend on it.
func (c *cache) hash(text string) uint64 {
	const enough = 64 // bytes, 384 bits
	return maphash.String(c.seed, text[max(len(text)-enough, 0):])
}

func (c *cache) bucket(hash uint64) *cacheBucket { return &c.buckets[hash&uint64(len(c.buckets)-1)] }

// find returns the token that text is, if it was verified by keys of that generation.
func (c *cache) find(hash uint64, text string, generation uint64) *Token {
	b := c.bucket(hash)
	for i := range b {
		if e := b[i].Load(); e != nil && e.text == text && e.generation == generation {
			return e.token
		}
	}
	return nil
}

// put keeps a token, in the place of one of another generation if there is one.
func (c *cache) put(hash uint64, e *entry) {
	b := c.bucket(hash)
	for i := range b {
		if old := b[i].Load(); old == nil || old.generation != e.generation || old.text == e.text {
			b[i].Store(e)
			return
		}
	}
	b[c.next.Add(1)%ways].Store(e)
}
