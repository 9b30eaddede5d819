package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// LendProcessors lets tests borrow as runs do.
var LendProcessors = lendProcessors

// AwayPast drives one event loop until all requests have been sent, has the server
// answer, and drives it on as if it had been stopped until past their time, or
// past the whole run's. It returns how the requests ended.
func AwayPast(ctx context.Context, o Options, answer func(), run bool) (Counts, error) {
	l, err := readied(ctx, &o, nanotime())
	if err != nil {
		return Counts{}, err
	}
	defer l.close()
	for n := 0; l.sending(o.Connections) && ctx.Err() == nil; n = l.await() {
		l.turn(n)
	}
	answer()
	for _, c := range l.conns {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, 10_000); n != 1 {
			return Counts{}, fmt.Errorf("waiting for an answer: %w", err)
		}
	}
	if run {
		l.plan.end.Store(l.now)
		l.plan.quit.Store(l.now)
	} else {
		l.plan.opts.Timeout = 1
	}
	l.run()
	return l.rec.counts, nil
}

// Late drives one event loop that got no processor until long after the run. It
// returns how the requests ended.
func Late(ctx context.Context, o Options) (Counts, error) {
	l, err := readied(ctx, &o, nanotime()-int64(time.Hour))
	if err != nil {
		return Counts{}, err
	}
	defer l.close()
	l.run()
	return l.rec.counts, nil
}

// AwayIdle drives one event loop until n connections are idle, has the server end them,
// and drives it on as if it had been stopped until then, and for so long. It returns how
// the requests ended.
func AwayIdle(ctx context.Context, o Options, n int, end func(), away time.Duration) (Counts, error) {
	l, err := readied(ctx, &o, nanotime())
	if err != nil {
		return Counts{}, err
	}
	defer l.close()
	for ready := 0; l.rec.counts.Answered() < uint64(n) && ctx.Err() == nil; ready = l.await() {
		l.turn(ready)
	}
	end()
	for c := l.idle[0].first; c != nil; c = c.next {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLRDHUP}}, 10_000); n != 1 {
			return Counts{}, fmt.Errorf("waiting for the end of a connection: %w", err)
		}
	}
	l.due, l.source.offset = l.due-int64(away), l.source.offset-int64(away)
	for l.turn(l.await()) {
	}
	return l.rec.counts, nil
}

// Begun has one event loop begin what it begins together. It returns when each request
// began, in the order in which they did.
func Begun(ctx context.Context, o Options) (starts []time.Duration, err error) {
	l, err := readied(ctx, &o, nanotime())
	if err != nil {
		return nil, err
	}
	defer l.close()
	l.turn(0)
	for c := l.flight.first; c != nil; c = c.next {
		starts = append(starts, time.Duration(c.out.start))
	}
	return starts, nil
}

// readied is the first event loop of a run that began then.
func readied(ctx context.Context, o *Options, began int64) (*loop, error) {
	p, err := newPlan(o)
	if err != nil {
		return nil, err
	}
	if err := p.resolve(ctx); err != nil {
		return nil, err
	}
	p.start(began)
	p.series = newSeries(p.opts.Slice)
	return newLoop(p, 0)
}

// sending reports whether not every one of n requests has been sent.
func (l *loop) sending(n int) bool {
	for _, c := range l.conns {
		if c.busy && !c.connecting && len(c.unsent) == 0 {
			n--
		}
	}
	return n > 0
}
