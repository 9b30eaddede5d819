package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
)

// insideMetrics are those that an arm's own runtime tells, beside what it
// allocates: what grows over the measured part, what the collector stops and
// what pools give.
func (s *session) insideMetrics(m map[string]float64, requests float64) {
	before, after := s.before.metrics, s.after.metrics
	const goroutines = "/sched/goroutines:goroutines"
	if n, ok := after[goroutines]; ok {
		m["goroutines"] = n
		m["goroutine_growth"] = (n - before[goroutines]) * 1000 / requests
	}
	if pause := after["/sched/pauses/total/gc:seconds:p99"]; pause > 0 {
		m["gc_pause_p99"] = pause * float64(time.Second)
	}
	if takes := after["pool/takes"] - before["pool/takes"]; takes > 0 {
		m["pool_misses"] = (after["pool/misses"] - before["pool/misses"]) / takes
		m["pool_returns"] = (after["pool/returns"] - before["pool/returns"]) / takes
	}
	if s.amid == nil {
		return
	}
	for metric, name := range map[string]string{
		"heap_live": "/gc/heap/live:bytes", "stack_live": "/gc/scan/stack:bytes", "stack_memory": "/memory/classes/heap/stacks:bytes",
	} {
		if v, ok := s.amid.metrics[name]; ok {
			m[metric] = v
		}
	}
}

// amidAt is the share of the measured part after which garbage is collected amid
// the load: late, so that what piles up has had time to.
const amidAt = 0.8

// amid is a look at the specimen amid the load, for workloads that are live.
type amid struct {
	timer   *time.Timer
	done    chan struct{}
	metrics map[string]float64
	err     error
}

// planAmid has the specimen's garbage collected later in the measured part, which
// begins now, and what is left read.
func (s *session) planAmid() {
	if !s.w.Live {
		return
	}
	a := &amid{done: make(chan struct{})}
	a.timer = time.AfterFunc(time.Duration(amidAt*float64(s.r.Study.Measured(s.w))), func() {
		defer close(a.done)
		a.metrics, a.err = s.readAmid()
	})
	s.amid = a
}

func (s *session) readAmid() (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answer.Within)
	defer cancel()
	if err := s.proc.GC(ctx); err != nil {
		return nil, err
	}
	return s.proc.Metrics(ctx)
}

// endAmid waits for a look that is under way; one that is still planned is not
// taken, since the load has ended.
func (s *session) endAmid() {
	if s.amid != nil && !s.amid.timer.Stop() {
		<-s.amid.done
	}
}

// keepAmid notes why nothing could be read amid the load.
func (s *session) keepAmid(t *record.Trial) {
	if s.amid == nil {
		return
	}
	if err := s.amid.err; err != nil && !errors.Is(err, arm.ErrNoControl) {
		t.Warnings = append(t.Warnings, fmt.Sprintf("collecting garbage amid the load: %v", err))
	}
}

// countersMissing says why this machine counts no cache hits, for a study that
// asks for them; "" if it does, or is not asked.
func (r *runner) countersMissing() string {
	for _, w := range r.Study.Workloads {
		if !w.Counters {
			continue
		}
		c, err := arm.OpenCounters(os.Getpid())
		if err != nil {
			return fmt.Sprintf("cache hits were not counted: %v. What the arms differ by is judged by time alone", err)
		}
		c.Close()
	}
	return ""
}

// countedLoop runs the loop in the arm's process while hardware counters watch
// it, if the workload asks for them and there are any. What the arm does to get
// ready for the loop is counted with it: the same requests.
func (s *session) countedLoop(ctx context.Context, reqs []arm.LoopRequest, t *record.Trial) (*arm.LoopResult, error) {
	if !s.w.Counters {
		return s.proc.Loop(ctx, s.w.Loop, reqs)
	}
	c, err := arm.OpenCounters(s.proc.PID())
	if errors.Is(err, arm.ErrNotSupported) {
		return s.proc.Loop(ctx, s.w.Loop, reqs) // the run says so once
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	res, err := s.proc.Loop(ctx, s.w.Loop, reqs)
	if err != nil {
		return nil, err
	}
	hits, err := c.Hits()
	if err != nil {
		return nil, err
	}
	t.Metrics["loop_cache_hits"] = hits
	return res, nil
}
