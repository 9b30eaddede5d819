package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// idle opens the workload's idle connections, which stay to the end of the
// session, and measures what they take of the specimen's memory. It comes before
// the load: later the heap has room for them already.
func (s *session) idle(ctx context.Context, t *record.Trial) error {
	n := s.w.Idle
	if n == 0 {
		return nil
	}
	if err := s.collect(ctx); err != nil {
		return err
	}
	before, unread := s.proc.Usage(false)
	if err := s.idlers.Open(ctx, n, s.proc, s.w.Targets[0]); err != nil {
		return fmt.Errorf("opening %d idle connections: %w", n, err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(study.IdleSettle):
	}
	socks, err := s.proc.Sockets()
	if open := socks["ESTABLISHED"]; err == nil && open < n {
		return fmt.Errorf("of %d idle connections the arm closed %d within %v", n, n-open, study.IdleSettle)
	}
	if err := s.collect(ctx); err != nil {
		return err
	}
	after, err := s.proc.Usage(false)
	if err := cmp.Or(unread, err); err != nil {
		if errors.Is(err, arm.ErrNotSupported) {
			return nil // a URL, or a system that does not report it: then there is no such metric
		}
		return err
	}
	t.Metrics["idle_connection"] = (float64(after.RSS) - float64(before.RSS)) / float64(n)
	return nil
}

// collect has the specimen give back what it does not hold any more, if it takes
// questions: what connections cost while idle, not while they were opened, is
// asked for.
func (s *session) collect(ctx context.Context) error {
	if err := s.proc.GC(ctx); err != nil && !untold(err) {
		return fmt.Errorf("collecting the arm's garbage: %w", err)
	}
	return nil
}
