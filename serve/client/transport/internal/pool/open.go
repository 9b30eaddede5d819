package pool

import (
	"context"
	"math/rand/v2"
	"time"
)

// How long KeepOpen waits between two looks, and after a failure.
const (
	lookEvery  = time.Second
	firstPause = 100 * time.Millisecond
	mostPause  = 30 * time.Second
)

// KeepOpen has that many be open, in use or idle, until the context ends. It opens what is
// missing, one after the other, and each second looks for idle ones that are of no use. After a
// failure it waits, for a tenth of a second at first, twice as long each time, and for half a
// minute at most. That one ends at once, before it was used, is a failure, too.
func (p *Pool[T]) KeepOpen(ctx context.Context, least int, open func(context.Context) (T, error)) {
	p.want(least)
	pause := time.Duration(0)
	for {
		wait, fewer := lookEvery, p.fewer
		switch p.look(ctx, least, open) {
		case steady:
			pause = 0
		case failed:
			pause = min(max(2*pause, firstPause), mostPause)
			wait, fewer = pause, nil
		case resting:
			wait, fewer = mostPause, nil
		}
		next := time.NewTimer(wait + rand.N(wait/8))
		select {
		case <-next.C:
		case <-fewer:
		case <-ctx.Done():
			next.Stop()
			return
		}
		next.Stop()
	}
}

// want notes how many are to be open.
func (p *Pool[T]) want(least int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.least, p.rests = least, false
}

// finding is what a look came to.
type finding int

const (
	steady  finding = iota // all are there
	opened                 // some were opened, and may end at once
	failed                 // one could not be opened, or has ended at once
	resting                // they are to be left as they are
)

// look opens what is missing.
func (p *Pool[T]) look(ctx context.Context, least int, open func(context.Context) (T, error)) finding {
	if how := p.prune(); how != steady {
		return how
	}
	how := steady
	for n := 0; n < least && p.reserve(least); n++ {
		one, err := open(ctx)
		if err != nil {
			p.Free()
			return failed
		}
		p.keepFresh(ctx, one)
		how = opened
	}
	return how
}

// prune closes idle ones that are of no use. It has failed if one was opened lately, and has
// ended all the same.
func (p *Pool[T]) prune() finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rests {
		p.rests = false
		return resting
	}
	how := steady
	p.cutLocked(func(i int) bool {
		k := p.idle[i]
		goes := p.o.Useless(k.one)
		if goes && k.fresh && time.Since(k.since) < 2*lookEvery {
			how = failed
		}
		return goes
	})
	select {
	case <-p.fewer: // it is seen to now
	default:
	}
	return how
}

// reserve takes the place of one that is to be opened, if there are too few.
func (p *Pool[T]) reserve(least int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= least || p.o.Open > 0 && p.open >= p.o.Open {
		return false
	}
	p.open++
	return true
}

// keepFresh keeps one that was opened just now, unless nobody wants it any more: who has ended
// the context may have closed those that were idle before.
func (p *Pool[T]) keepFresh(ctx context.Context, one T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		p.dropLocked(one)
		return
	}
	p.keepLocked(kept[T]{one: one, fresh: true})
}
