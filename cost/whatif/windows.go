package whatif

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
)

// pair is two windows, close together and in random order.
type pair struct{ off, on probe.Reading }

// alternate measures pairs of windows until the time is over. If the context is done
// or the process cannot be read any more, it returns the pairs so far and the reason.
func (r *run) alternate(ctx context.Context, brake *probe.Brake) ([]pair, error) {
	rng := rand.New(rand.NewPCG(r.Seed, 0))
	pairs := make([]pair, 0, r.For/(2*r.Window))
	for range cap(pairs) {
		var p pair
		for _, i := range rng.Perm(2) {
			reading, err := r.readWindow(ctx, brake, window{on: i == 1, d: r.Window, most: 2 * r.Window})
			if err != nil {
				return pairs, err
			}
			if i == 1 {
				p.on = reading
			} else {
				p.off = reading
			}
		}
		pairs = append(pairs, p)
	}
	return pairs, brake.Off()
}

// window is a time during which the owner is slowed down, or not.
type window struct {
	on   bool
	d    time.Duration
	most time.Duration // for which the probe may go on if nobody turns it off
}

// readWindow measures one window, without its first tenth.
func (r *run) readWindow(ctx context.Context, brake *probe.Brake, w window) (probe.Reading, error) {
	var err error
	if w.on {
		err = brake.On(r.Slow, w.most)
	} else {
		err = brake.Off()
	}
	if err != nil {
		return probe.Reading{}, err
	}
	if err := pause(ctx, w.d/10); err != nil {
		return probe.Reading{}, err
	}
	before, err := brake.Read()
	if err != nil {
		return probe.Reading{}, err
	}
	if err := pause(ctx, w.d-w.d/10); err != nil {
		return probe.Reading{}, err
	}
	after, err := brake.Read()
	if err != nil {
		return probe.Reading{}, err
	}
	return after.Since(before), nil
}

// pause waits, or returns why the context is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
