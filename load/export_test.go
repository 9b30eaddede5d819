package load

import (
	"context"
	"testing"
	"time"

	"github.com/tarehq/tare/load/internal/check"
)

// Internals that the external tests of the request side look at.

// Encoded returns the first n requests that worker sends and the targets they
// are for.
func Encoded(o Options, worker, n int) (reqs []string, targets []int, err error) {
	s, err := newScript(&o)
	if err != nil {
		return nil, nil, err
	}
	c := s.cursor(worker)
	var buf []byte
	for range n {
		req, tail, t := c.next(&buf)
		reqs, targets = append(reqs, string(req)+string(tail)), append(targets, t)
	}
	return reqs, targets, nil
}

// Columns are the names of the fields that f fills, in their order.
func Columns(f *Feeder) []string { return f.table.Columns }

// EncodedClosing returns the first request that asks for the connection's end.
func EncodedClosing(o Options) (string, error) {
	s, err := newScript(&o)
	if err != nil {
		return "", err
	}
	req, tail, _ := s.cursor(0).nextClosing(new([]byte))
	return string(req) + string(tail), nil
}

// NextAllocs returns how many allocations a request costs.
func NextAllocs(o Options) (float64, error) {
	s, err := newScript(&o)
	if err != nil {
		return 0, err
	}
	c := s.cursor(0)
	buf := make([]byte, 0, 4096)
	return testing.AllocsPerRun(1000, func() { c.next(&buf) }), nil
}

// Verified checks one answer whose body comes in pieces of step bytes.
func Verified(v Verify, status int, head, body string, step int) (bool, error) {
	c, err := compileVerify(&v, false)
	if err != nil {
		return false, err
	}
	var st check.Stream
	st.Reset(&check.Check{Contains: []byte("an earlier use"), Digest: []byte("of the same stream")})
	st.Write([]byte("an earlier"))
	st.Reset(&c)
	for rest := []byte(body); len(rest) > 0; {
		n := min(step, len(rest))
		st.Write(rest[:n])
		rest = rest[n:]
	}
	return c.HeadOK(status, []byte(head)) && st.OK(), nil
}

// Patience is how long after the last of o's requests began it is given up; false if
// it is waited for without end.
func Patience(o Options) (d time.Duration, ends bool, err error) {
	p, err := newPlan(&o)
	if err != nil {
		return 0, false, err
	}
	p.start(nanotime())
	for range o.Requests {
		p.take(p.measure)
	}
	return time.Duration(p.giveUp() - p.spent.Load()), p.giveUp() != never, nil
}

// SlowWorkers runs o on goroutines that each take so long until they can begin, of
// requests that are answered at once. It returns how many there were, too.
func SlowWorkers(o Options, start time.Duration) (r *Result, workers int, err error) {
	p, err := newPlan(&o)
	if err != nil {
		return nil, 0, err
	}
	if err := p.resolve(context.Background()); err != nil {
		return nil, 0, err
	}
	p.start(nanotime())
	p.series = newSeries(p.opts.Slice)
	e := newNetEngine(p)
	e.exchanger = func(int, *recorder) exchanger {
		time.Sleep(start)
		return answered{}
	}
	e.drive()()
	return (&conductor{plan: p}).result(nil), len(e.made), nil
}

// answered stands for a server that takes no time.
type answered struct{}

func (answered) exchange(o *outcome) (failure, error) {
	o.status, o.verified, o.firstByte = 200, true, nanotime()
	return 0, nil
}

func (answered) close() {}
