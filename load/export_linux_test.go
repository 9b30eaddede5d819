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
	p, err := newPlan(&o)
	if err != nil {
		return Counts{}, err
	}
	if err := p.resolve(ctx); err != nil {
		return Counts{}, err
	}
	p.start(nanotime())
	p.series = newSeries(p.opts.Slice)
	l, err := newLoop(p, 0)
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
		p.end.Store(l.now)
		p.quit.Store(l.now)
	} else {
		p.opts.Timeout = 1
	}
	l.run()
	return l.rec.counts, nil
}

// Late drives one event loop that got no processor until long after the run. It
// returns how the requests ended.
func Late(ctx context.Context, o Options) (Counts, error) {
	p, err := newPlan(&o)
	if err != nil {
		return Counts{}, err
	}
	if err := p.resolve(ctx); err != nil {
		return Counts{}, err
	}
	p.start(nanotime() - int64(time.Hour))
	p.series = newSeries(p.opts.Slice)
	l, err := newLoop(p, 0)
	if err != nil {
		return Counts{}, err
	}
	defer l.close()
	l.run()
	return l.rec.counts, nil
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
