// Package term keeps when the request that a connection is at ends at the latest.
package term

import (
	"sync"
	"time"
)

// Owner is a request. Expire is called once its time is over, on a goroutine of its own.
type Owner interface{ Expire() }

// Term is when a connection's request ends. What is of one request is not seen by another
// that asks late. The zero value is of none. It is safe for concurrent use.
type Term struct {
	mu    sync.Mutex
	of    Owner
	until time.Time
	timer *time.Timer // nil: nobody waits
}

// EndOf returns when o ends at the latest, zero if it has no end.
func (t *Term) EndOf(o Owner) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != o {
		return time.Time{}
	}
	return t.until
}

// Set has o end then; for zero it has no end any more.
func (t *Term) Set(o Owner, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == o {
		t.stop()
		t.of, t.until = nil, time.Time{}
	}
	if !until.IsZero() {
		t.of, t.until = o, until
	}
}

// Wait starts the timer, if o has an end.
func (t *Term) Wait(o Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == o {
		t.stop()
		t.timer = time.AfterFunc(time.Until(t.until), o.Expire)
	}
}

// Halt stops the timer of o, which has ended.
func (t *Term) Halt(o Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == o {
		t.stop()
	}
}

func (t *Term) stop() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
