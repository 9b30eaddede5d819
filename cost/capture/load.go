package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/load"
)

// slice is how finely a load's answers are counted over time: requests go slower while a
// trace is recorded.
const slice = 50 * time.Millisecond

// Load is a load that runs beside a measurement.
type Load struct {
	cancel context.CancelFunc
	done   chan error
	res    *load.Result
}

// LoadError says that a load could not be started.
type LoadError struct {
	Err     error
	Network *NetworkError // the likely reason; nil: not this
}

func (e *LoadError) Error() string { return e.Err.Error() }

// Unwrap returns the reasons.
func (e *LoadError) Unwrap() []error {
	if e.Network == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Network}
}

// StartLoad starts a load of one target, after that has answered once, and waits until
// the measured part is under way: pools fill and connections open before. The load goes
// on until End is called or the context is done. Of o, it sets Duration, Slice, Mark and,
// if that is 0, WarmUp.
func StartLoad(ctx context.Context, o load.Options) (*Load, error) {
	url := load.Shown(o.Targets[0].URL)
	_, err := load.Run(ctx, load.Options{Targets: o.Targets, Connections: 1, Requests: 1, Timeout: 10 * time.Second})
	if err == nil {
		err = ctx.Err() // an interrupted load is none by itself
	}
	if err != nil {
		return nil, &LoadError{Err: fmt.Errorf("loading %s: %w", url, err)}
	}
	begun := make(chan struct{})
	o.Mark = func(begin bool) {
		if begin {
			close(begun)
		}
	}
	const longest = 24 * time.Hour
	o.WarmUp, o.Duration, o.Slice = cmp.Or(o.WarmUp, time.Second), longest, slice
	ctx, cancel := context.WithCancel(ctx)
	l := &Load{cancel: cancel, done: make(chan error, 1)}
	go func() {
		var err error
		l.res, err = load.Run(ctx, o)
		l.done <- err
	}()
	select {
	case <-begun:
		return l, nil
	case err := <-l.done:
		cancel()
		if err == nil {
			err = cmp.Or(ctx.Err(), errors.New("it ended before it began"))
		}
		return nil, &LoadError{Err: fmt.Errorf("loading %s: %w", url, err)}
	}
}

// End ends the load, and returns what was wrong with the answers. It is an error if there
// were none.
func (l *Load) End() (warnings []error, err error) {
	l.cancel()
	if err := <-l.done; err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	if l.res.Counts.Answered() == 0 || l.res.Elapsed == 0 {
		return nil, errors.New("loading: no request was answered")
	}
	return amiss(&l.res.Counts), nil
}

// Result is what the load saw, once it has ended.
func (l *Load) Result() *load.Result { return l.res }

// Requests is how many requests were answered in a part of the load's time, once it has
// ended.
func (l *Load) Requests(from time.Time, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	begin := from.Sub(l.res.Started)
	end := begin + d
	var n float64
	for _, s := range l.res.Series {
		overlap := min(end, s.At+slice) - max(begin, s.At)
		if overlap > 0 {
			n += float64(s.Answered) * overlap.Seconds() / slice.Seconds()
		}
	}
	return n
}

// amiss says what was wrong with the answers.
func amiss(c *load.Counts) (warnings []error) {
	if bad := c.Scheduled - c.Answered(); bad > 0 {
		warnings = append(warnings, fmt.Errorf("%d of %d requests were not answered", bad, c.Scheduled))
	}
	if odd := c.Status[4] + c.Status[5]; odd > 0 {
		warnings = append(warnings, fmt.Errorf("%d of %d answers had status 4xx or 5xx: check the URL, and the header fields that it needs (-H)", odd, c.Answered()))
	}
	return warnings
}
