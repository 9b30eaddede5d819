package capture

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/internal/cgroup"
	"github.com/tarehq/tare/stats/unit"
)

// counting counts the requests of processes while they are sampled.
type counting struct {
	pids     []int
	targets  []*probe.Target
	counters []*probe.Counter
	refused  error  // why there are none
	end      func() // ends run, and waits until it has ended

	// Once it has.
	seen []probe.Counted // by the counters
	errs []error
}

// newCounting prepares to count the requests of the processes that are to be sampled.
func newCounting(ctx context.Context, t *Target) *counting {
	n := &counting{end: func() {}}
	pids := []int{t.PID}
	if t.PID == 0 {
		pids, n.refused = cgroup.Members(t.cgroup)
	}
	const most = 16
	if len(pids) > most {
		n.refused = fmt.Errorf("they are not in more than %d processes, and there are %d", most, len(pids))
		return n
	}
	price, err := probe.Calibrate(ctx)
	if err != nil {
		n.refused = err
		return n
	}
	for _, pid := range pids {
		if err := n.add(pid, price); n.refused == nil {
			n.refused = err
		}
	}
	switch {
	case len(n.counters) > 0:
		n.refused = nil // the others are no servers
	case len(pids) > 1:
		n.refused = fmt.Errorf("they cannot be in any of the %d processes; of the first: %w", len(pids), n.refused)
	}
	return n
}

// add prepares to count a process's requests.
func (n *counting) add(pid int, price probe.Price) error {
	t, err := probe.Open(pid)
	if err != nil {
		return err
	}
	counter, err := t.NewCounter(price)
	if err != nil {
		return errors.Join(err, t.Close())
	}
	n.pids, n.targets, n.counters = append(n.pids, pid), append(n.targets, t), append(n.counters, counter)
	return nil
}

// describe says what is done beside sampling.
func (n *counting) describe() string {
	if len(n.counters) == 0 {
		return ""
	}
	return fmt.Sprintf(" and counting its requests for %s of that", unit.Format(probe.CountShare, unit.Share))
}

// run counts for as long as they are sampled.
func (n *counting) run(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	n.seen, n.errs = make([]probe.Counted, len(n.counters)), make([]error, len(n.counters))
	var each sync.WaitGroup
	for i, counter := range n.counters {
		each.Go(func() { n.seen[i], n.errs[i] = counter.Run(ctx, d) })
	}
	n.end = func() {
		cancel()
		each.Wait()
	}
}

// takeCount works out how many requests the processes have answered while they were sampled,
// by the CPU that they used; or takes over why that cannot be said.
func (c *Capture) takeCount(n *counting, all []bpf.Process) {
	uncounted := func(err error) {
		c.Warnings = append(c.Warnings, fmt.Errorf("requests were not counted from outside: %w", err))
	}
	if err := errors.Join(n.refused, errors.Join(n.errs...)); err != nil {
		uncounted(err)
		return
	}
	if len(n.counters) == 0 {
		return
	}
	sum := &probe.Counted{}
	used, later := n.used(all)
	var requests, margin float64
	for i, one := range n.seen {
		sum.Requests += one.Requests
		sum.Windows, sum.During = max(sum.Windows, one.Windows), max(sum.During, one.During)
		if one.CPU <= 0 {
			continue
		}
		of := one.Requests * used[i] / one.CPU.Seconds()
		requests += of
		margin = math.Hypot(margin, of*one.Margin)
	}
	if requests == 0 {
		uncounted(fmt.Errorf("none was seen in %d windows, %s in all", sum.Windows, unit.Format(float64(sum.During), unit.Nanoseconds)))
		return
	}
	c.Counted = sum
	c.Window.Requests, c.Window.Margin = math.Round(requests), margin
	if later > 0 {
		c.Warnings = append(c.Warnings, fmt.Errorf("requests of programs that began meanwhile, %d, were not counted: each is taken to have cost as much CPU as one before", later))
	}
}

// used shares out the CPU that the processes used, in seconds, among the counters that
// tell its requests, and returns how many programs began later than these: a process's
// own, if it goes on as another program, else those of all that run the same program.
func (n *counting) used(all []bpf.Process) (seconds []float64, later int) {
	seconds = make([]float64, len(n.seen))
	names := map[int]string{}
	for _, p := range all {
		names[p.PID] = p.Name
	}
	met := map[int]bool{}
	for _, p := range all {
		own := slices.Index(n.pids, p.PID)
		var like []int
		var cpu float64
		for i, c := range n.seen {
			if c.CPU > 0 && (i == own || own < 0 && names[n.pids[i]] == p.Name) {
				like = append(like, i)
				cpu += c.CPU.Seconds()
			}
		}
		for _, i := range like {
			seconds[i] += p.CPU.Seconds() * n.seen[i].CPU.Seconds() / cpu
		}
		if len(like) > 0 && (own < 0 || met[p.PID]) {
			later++
		}
		met[p.PID] = true
	}
	return seconds, later
}

// close takes all probes away.
func (n *counting) close() error {
	n.end()
	var errs []error
	for i, counter := range n.counters {
		errs = append(errs, counter.Close(), n.targets[i].Close())
	}
	return errors.Join(errs...)
}
