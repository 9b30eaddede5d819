package client

import (
	"sync"
	"time"
)

// reserve is what a budget holds at most, in attempts.
const reserve = 10

// budget is how many attempts beyond the first a host has.
type budget struct {
	mu   sync.Mutex
	left float64
	at   time.Time // of the last refill by time; zero: none yet
	_    [24]byte  // a cache line for each
}

// earn adds a request's share.
func (b *budget) earn(share float64) {
	if share <= 0 {
		return
	}
	b.mu.Lock()
	b.left = min(b.left+share, reserve)
	b.mu.Unlock()
}

// spend takes an attempt, if there is one.
func (b *budget) spend(share float64) bool {
	if share < 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if !b.at.IsZero() {
		b.left = min(b.left+now.Sub(b.at).Seconds(), reserve)
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
