package redislimit

import (
	"sync"
	"time"

	"github.com/tarehq/tare/serve/middleware/ratelimit"
)

// table remembers, by the hashes of keys, what Redis said: requests that may be given
// out, and since when others may come. It is bounded: a new key takes the place of any.
type table struct {
	shards [64]shard
	most   int // entries a shard
}

type shard struct {
	mu      sync.Mutex
	entries map[uint64]*entry
}

type entry struct {
	said
	flight *flight // nil: nobody asks
}

// said is what Redis said of a key.
type said struct {
	left      int           // requests to give out
	void      time.Duration // when what is left is void
	retry     time.Duration // when Redis may be asked again, 0 = at any time
	remaining int           // that could be taken from Redis
	reset     time.Duration // when all of the limit is there again
}

// result is that of a request which was given out, or refused.
func (s said) result(now time.Duration) ratelimit.Result {
	res := ratelimit.Result{Allowed: s.retry == 0, Reset: max(s.reset-now, 0)}
	if res.Allowed {
		res.Remaining = s.left + s.remaining
	} else {
		res.Retry = s.retry - now
	}
	return res
}

// flight is a request that asks Redis for others of its key, too.
type flight struct {
	over   chan struct{}
	failed bool // set before over is closed
}

type kind uint8

const (
	ask     kind = iota // Redis
	granted             // here
	denied              // here
	wait                // for the flight
)

type decision struct {
	kind   kind
	said   said // if granted or denied
	flight *flight
}

func newTable(keys int) *table {
	t := &table{}
	t.most = max(keys/len(t.shards), 1)
	for i := range t.shards {
		t.shards[i].entries = map[uint64]*entry{}
	}
	return t
}

func (t *table) shard(hash uint64) *shard { return &t.shards[hash>>58] }

// decide gives a request out or refuses it, if that is known. With together one request
// of a key asks at a time, and the others wait for it.
func (t *table) decide(hash uint64, now time.Duration, together bool) decision {
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[hash]
	switch {
	case e == nil:
	case e.left > 0 && now < e.void:
		e.left--
		return decision{kind: granted, said: e.said}
	case now < e.retry:
		return decision{kind: denied, said: e.said}
	}
	if !together {
		return decision{}
	}
	if e == nil {
		e = t.add(s, hash)
	}
	if e.flight != nil {
		return decision{kind: wait, flight: e.flight}
	}
	e.flight = &flight{over: make(chan struct{})}
	return decision{flight: e.flight}
}

// add makes room for a key.
func (t *table) add(s *shard, hash uint64) *entry {
	if len(s.entries) >= t.most {
		for other, e := range s.entries {
			if e.flight == nil {
				delete(s.entries, other)
				break
			}
		}
	}
	e := new(entry)
	s.entries[hash] = e
	return e
}

// learn keeps what Redis said and has those who wait look.
func (t *table) learn(hash uint64, f *flight, said said) {
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[hash]
	if e == nil && (said.left > 0 || said.retry > 0) {
		e = t.add(s, hash)
	}
	if e != nil {
		e.said = said
	}
	end(e, f)
}

// fail has those who wait decide for themselves.
func (t *table) fail(hash uint64, f *flight) {
	if f == nil {
		return
	}
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.failed = true
	end(s.entries[hash], f)
}

func end(e *entry, f *flight) {
	if f == nil {
		return
	}
	if e != nil && e.flight == f {
		e.flight = nil
	}
	close(f.over)
}
