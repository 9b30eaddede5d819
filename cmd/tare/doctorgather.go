package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/doctor/compiler"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/stats/unit"
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
	mu sync.Mutex // of Reasons

	profiledFrom, tracedFrom time.Time // the beginning of Window and Traced
}

// lack notes why a part is not there.
func (g *gathering) lack(p doctor.Part, err error) {
	if err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Reasons[p] = err.Error()
}

// gather looks at a patient: what takes its time side by side, under load if that
// is asked for, and then what would disturb it.
func (c *doctorCmd) gather(ctx context.Context, t *cli.Terminal, p *patient) (*doctor.Evidence, error) {
	g := &gathering{Evidence: &doctor.Evidence{Subject: p.name, Reasons: p.reasons}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	show := cli.NewProgress(t)
	defer show.Done()
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { c.ask(ctx, g) })
	beside.Go(func() { c.probe(ctx, p, g) })
	pressing, release := context.WithCancel(ctx)
	defer release()
	press, err := c.press(pressing)
	if err != nil {
		cancel()
		return nil, err
	}
	g.facts(p.pid)
	t.Note("looking at %s for %s; expected to cost it %s", p.name, c.For, c.price(p))
	if err := c.profile(ctx, show, p, g); err != nil {
		cancel()
		return nil, err
	}
	g.facts(p.pid)
	if press != nil {
		press.tell(release, g)
	}
	show.Draw("waiting for the probe and the compiler")
	beside.Wait()
	return g.Evidence, ctx.Err()
}

// facts adds what /proc has on the process now.
func (g *gathering) facts(pid int) {
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

// price says what looking at a service is expected to cost it.
func (c *doctorCmd) price(p *patient) string {
	if p.service == nil {
		return unit.Format(bpf.Price(samplesPerSecond), unit.Share) + " of the CPU it uses"
	}
	return fmt.Sprintf("%s of the CPU it uses, then %s for %s", priceOfProfile, priceOfTrace, c.tracing())
}

// tracing is for how long waits are recorded.
func (c *doctorCmd) tracing() time.Duration { return min(c.For/2, tracedMost) }

// profile takes every profile that the service has.
func (c *doctorCmd) profile(ctx context.Context, show *cli.Progress, p *patient, g *gathering) error {
	s := p.service
	if s == nil {
		show.Draw("CPU, from outside")
		return c.sample(ctx, p, g)
	}
	g.remember(ctx, s)
	g.hold(ctx, s)
	show.Draw("CPU, allocations, goroutines")
	var others sync.WaitGroup
	others.Go(func() {
		allocs, err := s.Allocs(ctx, c.For)
		g.lack(doctor.AllocationProfile, err)
		g.Allocs = profiled(allocs)
	})
	others.Go(func() {
		if held, err := s.Contention(ctx, c.For); err == nil { // most services have none to show
			g.Contention = profiled(held)
		}
	})
	others.Go(func() { g.count(ctx, s, c.For) })
	g.profiledFrom = time.Now()
	cpu, _, err := capture.CPU(ctx, s, c.For)
	others.Wait()
	if err != nil {
		return unprofiled(err)
	}
	g.CPU = profiled(cpu)
	g.Warnings = append(g.Warnings, cli.Texts(cpu.Warnings)...)
	g.Window = cost.Window{Duration: cpu.Duration}
	g.remember(ctx, s)
	show.Draw("execution trace")
	g.tracedFrom = time.Now()
	tr, err := trace(ctx, s, c.tracing())
	if err != nil {
		g.lack(doctor.ExecutionTrace, err)
	} else {
		g.Waits, g.Traced = append([]cost.Wait{}, tr.Waits...), cost.Window{Duration: tr.Duration}
		if tr.Broken != nil {
			g.Warnings = append(g.Warnings, tr.Broken.Error())
		}
	}
	show.Draw("heap")
	g.hold(ctx, s)
	g.born(ctx, s)
	g.leaks(ctx, s)
	return nil
}

// samplesPerSecond is enough for shares of a hundredth in ten seconds, and takes
// about a hundredth of a CPU.
const samplesPerSecond = 499

// sample looks at a process without profiles from outside. Where that is not
// possible the facts in /proc must do.
func (c *doctorCmd) sample(ctx context.Context, p *patient, g *gathering) error {
	g.profiledFrom = time.Now()
	s, err := bpf.Start(bpf.Options{PID: p.pid, Hz: samplesPerSecond})
	if err != nil {
		g.lack(doctor.CPUProfile, fmt.Errorf("%s; sampling it from outside: %w", noProfiles, err))
		select {
		case <-ctx.Done():
		case <-time.After(c.For):
		}
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
	case <-s.Ended():
	case <-time.After(c.For):
	}
	seen, err := s.Stop()
	if err != nil {
		return fmt.Errorf("sampling process %d: %w", p.pid, err)
	}
	g.CPU = append([]cost.Stack{}, seen.Stacks...)
	g.Window = cost.Window{Duration: seen.Duration}
	return ctx.Err()
}

// profiled is a profile's stacks: none, but not nil, of an empty one.
func profiled(p *pprof.Profile) []cost.Stack {
	if p == nil {
		return nil
	}
	return append([]cost.Stack{}, p.Stacks...)
}

// remember adds the state of the heap now.
func (g *gathering) remember(ctx context.Context, s *pprof.Service) {
	m, err := s.Memory(ctx)
	if err != nil {
		g.lack(doctor.MemoryStatistics, err)
		return
	}
	g.Memory = append(g.Memory, doctor.Memory(*m))
}

// hold adds what the heap holds now.
func (g *gathering) hold(ctx context.Context, s *pprof.Service) {
	p, err := s.Live(ctx)
	if err != nil {
		g.lack(doctor.LiveHeap, err)
		return
	}
	g.Live = append(g.Live, profiled(p))
}

// count counts the goroutines several times over d.
func (g *gathering) count(ctx context.Context, s *pprof.Service, d time.Duration) {
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

// born asks where goroutines were started if there are more than before.
func (g *gathering) born(ctx context.Context, s *pprof.Service) {
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

// leaks asks for the collector's word on which goroutines can never run again. A
// leak may be old: it need not grow.
func (g *gathering) leaks(ctx context.Context, s *pprof.Service) {
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
func (c *doctorCmd) ask(ctx context.Context, g *gathering) {
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

// probed is how long the probe waits at least, if the profile gives it the time:
// a little more than what a rule calls long.
const probed = 500 * time.Millisecond

// probe sends half a header and waits until the server gives up, or as long as
// the profile takes.
func (c *doctorCmd) probe(ctx context.Context, p *patient, g *gathering) {
	to := c.Load
	if to == "" && p.onePort() {
		to = p.service.String()
	}
	u, err := url.Parse(to)
	switch _, local := here(to); {
	case to == "" || err != nil || u.Host == "":
		g.lack(doctor.HalfHeader, errors.New("the URL of the service itself, not of its profiles, is not known: --load URL"))
		return
	case u.Scheme != "http":
		g.lack(doctor.HalfHeader, errors.New("it is not sent over TLS"))
		return
	case !local && !c.Probe:
		g.lack(doctor.HalfHeader, errors.New("the server is on another machine: --probe allows it"))
		return
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	found, err := halfHeader(ctx, addr, c.For+probed)
	g.lack(doctor.HalfHeader, err)
	g.Probe = found
}

// onePort reports whether a process listens on the port of its profiles alone, so that
// it answers requests there too. Profiles with a port of their own often have a server
// of their own, without time-outs that nobody but its owner would meet.
func (p *patient) onePort() bool {
	if p.service == nil || p.pid == 0 {
		return false
	}
	ports, err := proc.Listening(p.pid)
	return err == nil && len(ports) == 1
}

// halfHeader connects, sends the beginning of a request and waits for the server
// to end it.
func halfHeader(ctx context.Context, addr string, most time.Duration) (*doctor.Probe, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	defer stop()
	begun := time.Now()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: half\r\nX-Half:")); err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(begun.Add(most)); err != nil {
		return nil, err
	}
	p := &doctor.Probe{Addr: addr}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	p.Answer = strings.TrimSpace(line)
	for err == nil { // until the connection ends
		_, err = in.ReadString('\n')
	}
	p.Waited = time.Since(begun)
	p.Closed = !errors.Is(err, os.ErrDeadlineExceeded)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return p, nil
}
