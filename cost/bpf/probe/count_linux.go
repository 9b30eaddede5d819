//go:build linux && (amd64 || arm64)

package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/cost"
)

// Counter counts a process's requests. It is not safe for concurrent use.
type Counter struct {
	Spans int // that Run has; 0: about thirty, and one a second. Placing a probe in each takes this process CPU

	d      *device
	begins []uint64
	price  Price
}

// NewCounter prepares to count requests; no probe is placed yet. It is an error
// that wraps cost.ErrNotSupported if the program has no function by which requests
// are known.
func (t *Target) NewCounter(p Price) (*Counter, error) {
	begins := t.pushes(beginning[:])
	if len(begins) == 0 {
		return nil, fmt.Errorf("no function of process %d is known to be called once a request: %w", t.pid, cost.ErrNotSupported)
	}
	d, err := newCountingDevice(t)
	if err != nil {
		return nil, err
	}
	return &Counter{d: d, begins: begins, price: p}, nil
}

// Run counts for a while, a tenth of it, or until the context is done or the
// process has ended: of each span of the time it counts in one window at random.
func (c *Counter) Run(ctx context.Context, d time.Duration) (Counted, error) {
	var res Counted
	var windows []seen
	var all float64
	begun := time.Now()
	for s := spanAt(0, d, c.Spans); s.from+s.long <= d; s.from = max(s.from+s.long, time.Since(begun).Truncate(s.long)) {
		if sleep(ctx, s.begin()-time.Since(begun)) != nil {
			break
		}
		r, err := c.window(ctx, s.window)
		if ctx.Err() != nil || errors.Is(err, errGone) {
			break
		}
		if err != nil {
			return Counted{}, err
		}
		probes := float64(r.Requests) * float64(c.price.Count)
		all += float64(r.CPU)
		windows = append(windows, seen{float64(r.Requests), float64(r.CPU) - probes})
		res.Requests += float64(r.Requests)
		res.During += r.Took
	}
	res.Windows = len(windows)
	ratio, margin := ratioOf(windows)
	if ratio > 0 {
		res.CPU = time.Duration(res.Requests / ratio)
		res.Margin = math.Hypot(margin, (all/float64(res.CPU)-1)/2)
	}
	return res, nil
}

// window places the probes and counts for a while.
func (c *Counter) window(ctx context.Context, d time.Duration) (r Reading, err error) {
	if err := c.d.attach(c.d.Count, c.begins, make([]uint64, len(c.begins))); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.d.detach()) }()
	before, err := c.read()
	if err != nil {
		return r, err
	}
	if err := sleep(ctx, d); err != nil {
		return r, err
	}
	after, err := c.read()
	return after.Since(before), err
}

func (c *Counter) read() (Reading, error) {
	at, cpu, err := c.d.clock()
	if err != nil {
		return Reading{}, err
	}
	n, err := c.d.counts(1)
	if err != nil {
		return Reading{}, err
	}
	return Reading{At: at, Requests: n[0], CPU: cpu}, nil
}

// Close takes the probes away.
func (c *Counter) Close() error { return c.d.Close() }
