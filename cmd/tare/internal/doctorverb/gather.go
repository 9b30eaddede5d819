package doctorverb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/doctor/compiler"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
)

const (
	looks       = 6               // at goroutines, over the profile's time
	tracedMost  = 5 * time.Second // since a trace costs the service more than a profile
	birthsMost  = 20_000          // goroutines beyond which asking for each is too dear
	birthsLeast = 10              // more goroutines than before that are worth asking after
)

// gathering is evidence on its way.
type gathering struct {
	*doctor.Evidence
	mu    sync.Mutex // of Reasons and ended
	ended bool       // what is looked at ended meanwhile
}

// lack notes why a part is not there.
func (g *gathering) lack(p doctor.Part, err error) {
	if err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Reasons[p] = err.Error()
	g.ended = g.ended || capture.Ended(err)
}

// gather looks at a patient: what takes its time side by side, under load if that
// is asked for, and then what would disturb it.
func (c *Command) gather(ctx context.Context, t *cli.Terminal, p *patient) (*doctor.Evidence, error) {
	g := &gathering{Evidence: &doctor.Evidence{Subject: p.name, Reasons: p.reasons}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	show := cli.NewProgress(t)
	defer show.Done()
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { c.ask(ctx, g) })
	beside.Go(func() { c.probe(ctx, p, g) })
	o := capture.Options{For: c.For.For, Waits: min(c.For.For/2, tracedMost), Load: c.Load.Options()}
	c.accompany(&o, show, p, g)
	t.Note("looking at %s for %s; expected to cost it %s", p.name, c.For.For, o.Price(p.target))
	if err := g.look(ctx, p, o); err != nil {
		cancel()
		return nil, cli.ExplainCapture(err)
	}
	show.Draw("waiting for the probe and the compiler")
	beside.Wait()
	c.ended = g.ended
	return g.Evidence, ctx.Err()
}

// accompany has what is not a profile of CPU, allocations or waits gathered around these.
func (c *Command) accompany(o *capture.Options, show *cli.Progress, p *patient, g *gathering) {
	s := p.target.Profiles
	if s == nil {
		o.Before = func(context.Context) {
			g.readFacts(p.pid)
			show.Draw("CPU, from outside")
		}
		o.After = func(context.Context) { g.readFacts(p.pid) }
		return
	}
	o.Before = func(ctx context.Context) {
		g.readFacts(p.pid)
		g.readMemory(ctx, s)
		g.readHeap(ctx, s)
		show.Draw("CPU, allocations, goroutines")
	}
	o.Beside = func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() {
			if held, err := s.Contention(ctx, o.For); err == nil { // most services have none to show
				g.Contention = profiled(held)
			}
		})
		both.Go(func() { g.countGoroutines(ctx, s, o.For) })
		both.Wait()
		g.readMemory(ctx, s)
		show.Draw("execution trace")
	}
	o.After = func(ctx context.Context) {
		show.Draw("heap")
		g.readHeap(ctx, s)
		g.findBirths(ctx, s)
		g.findLeaks(ctx, s)
		g.readFacts(p.pid)
	}
}

// look takes the capture. Where a process without profiles cannot be sampled, the facts
// in /proc must do.
func (g *gathering) look(ctx context.Context, p *patient, o capture.Options) error {
	c, err := capture.Run(ctx, p.target, o)
	if p.target.Profiles == nil && errors.Is(err, cost.ErrNotSupported) {
		g.lack(doctor.CPUProfile, fmt.Errorf("%s; sampling it from outside: %w", noProfiles, err))
		select {
		case <-ctx.Done():
		case <-time.After(o.For):
		}
		o.After(ctx)
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	g.ended = g.ended || c.Ended()
	g.CPU, g.Window = profiled(c.CPU), c.Window
	g.Waits, g.Traced = c.Waits, c.Traced
	if p.target.Profiles != nil {
		g.Allocs = profiled(c.Allocs)
		g.lack(doctor.AllocationProfile, c.AllocsErr)
		g.lack(doctor.ExecutionTrace, c.WaitsErr)
	}
	if c.Load != nil {
		g.Latency = time.Duration(c.Load.Service.Mean())
		g.Busy = int(c.Load.MeanFlight + 0.5)
	}
	if c.LoadErr != nil { // that none was answered is no reason to throw away what shows why
		g.lack(doctor.Traffic, c.LoadErr)
		g.Warnings = append(g.Warnings, c.LoadErr.Error())
	}
	for _, w := range c.Warnings {
		if lacking := c.AllocsErr != nil && errors.Is(w, c.AllocsErr) || c.WaitsErr != nil && errors.Is(w, c.WaitsErr); !lacking {
			g.Warnings = append(g.Warnings, w.Error())
		}
	}
	return nil
}

// readFacts adds what /proc has on the process now.
func (g *gathering) readFacts(pid int) {
	if pid == 0 {
		return
	}
	f, err := proc.Read(pid)
	if err != nil {
		g.lack(doctor.ProcessFacts, err)
		return
	}
	g.Process = append(g.Process, *f)
	if f.Quota.CPUs == 0 {
		g.lack(doctor.CPUQuota, errors.New("its cgroup sets none"))
	}
}

// profiled is a profile's stacks: none, but not nil, of an empty one.
func profiled(p *pprof.Profile) []cost.Stack {
	if p == nil {
		return nil
	}
	return append([]cost.Stack{}, p.Stacks...)
}

// readMemory adds the state of the heap now.
func (g *gathering) readMemory(ctx context.Context, s *pprof.Service) {
	m, err := s.Memory(ctx)
	if err != nil {
		g.lack(doctor.MemoryStatistics, err)
		return
	}
	g.Memory = append(g.Memory, doctor.Memory(*m))
}

// readHeap adds what the heap holds now.
func (g *gathering) readHeap(ctx context.Context, s *pprof.Service) {
	p, err := s.Live(ctx)
	if err != nil {
		g.lack(doctor.LiveHeap, err)
		return
	}
	g.Live = append(g.Live, profiled(p))
}

// countGoroutines counts the goroutines several times over d.
func (g *gathering) countGoroutines(ctx context.Context, s *pprof.Service, d time.Duration) {
	begun := time.Now()
	for i := range looks {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(begun.Add(d * time.Duration(i) / (looks - 1)))):
		}
		now := time.Since(begun)
		p, err := s.Goroutines(ctx)
		if err != nil {
			g.lack(doctor.GoroutineCounts, err)
			return
		}
		g.Counts = append(g.Counts, doctor.Count{After: now, Goroutines: profiled(p)})
	}
}

// findBirths asks where goroutines were started if there are more than before.
func (g *gathering) findBirths(ctx context.Context, s *pprof.Service) {
	if len(g.Counts) == 0 {
		return
	}
	total := func(c doctor.Count) (n float64) {
		for i := range c.Goroutines {
			n += c.Goroutines[i].Count
		}
		return n
	}
	first, last := total(g.Counts[0]), total(g.Counts[len(g.Counts)-1])
	if last <= first+birthsLeast || last > birthsMost {
		return
	}
	if births, err := s.Births(ctx); err == nil { // without them the function is named, not the line
		g.Births = births
	}
}

// findLeaks asks for the collector's word on which goroutines can never run again. A
// leak may be old: it need not grow.
func (g *gathering) findLeaks(ctx context.Context, s *pprof.Service) {
	p, err := s.Leaked(ctx)
	if refused, ok := errors.AsType[*pprof.Refusal](err); ok && refused.Code == http.StatusNotFound {
		return // toolchains before Go 1.27 have none
	}
	if err != nil {
		g.Warnings = append(g.Warnings, "asking for goroutines that wait for ever: "+err.Error())
	}
	g.Leaked = profiled(p)
}

// ask asks the compiler about the source.
func (c *Command) ask(ctx context.Context, g *gathering) {
	if c.Source == "" {
		g.lack(doctor.Source, errors.New("--source DIR names it"))
		return
	}
	decisions, err := compiler.Ask(ctx, c.Source)
	if err != nil {
		g.lack(doctor.Source, err)
		return
	}
	g.Decisions = append([]compiler.Decision{}, decisions...)
}
