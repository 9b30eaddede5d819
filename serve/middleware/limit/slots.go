package limit

import (
	"context"
	"sync/atomic"
	"time"
)

// slots are what requests in flight have one of each, and a queue for those who have none yet.
//
// taken counts both. Of these the first most have a slot, whoever they are; one who was in
// the queue learns of it by a turn. So for each slot of them that nobody has there is one turn
// on its way, and whoever leaves while he is among the first must take one of these with him.
type slots struct {
	most  int64         // 0: no limit
	queue int64         // how many may wait
	turns chan struct{} // who waits longest gets the next
	_     [64]byte      // what each request writes is on no cache line with what others read
	taken atomic.Int64
}

func (s *slots) init(most, queue int64) {
	s.most, s.queue = most, queue
	s.turns = make(chan struct{}, most) // there are never more, so that who gives one waits for nobody
}

// take reports whether it got a slot: at once, or within wait, or however long if that is
// negative. It ends with ctx.
func (s *slots) take(ctx context.Context, wait time.Duration) bool {
	n := s.taken.Load()
	for ; n < s.most+s.queue; n = s.taken.Load() {
		if s.taken.CompareAndSwap(n, n+1) {
			return n < s.most || s.await(ctx, wait)
		}
	}
	return false
}

// await reports whether one in the queue got a slot.
func (s *slots) await(ctx context.Context, wait time.Duration) bool {
	var over <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-s.turns:
		return true
	case <-over:
	case <-ctx.Done():
	}
	if s.taken.Add(-1) < s.most { // a slot had come meanwhile, which is given up with that
		<-s.turns
	}
	return false
}

// give gives a slot back. If anybody is in the queue, it is the next one's.
func (s *slots) give() {
	if s.taken.Add(-1) >= s.most {
		s.turns <- struct{}{}
	}
}
