// Package generator runs load generators against a server, and notes what both saw.
//
// A run is one fresh process of a generator against one fresh process of a server. What
// the generator prints is read by the expressions of its arm; where the server keeps a log,
// the two are held side by side. Which run comes when is not decided here.
package generator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/env"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/visit"
	"github.com/tarehq/tare/stats/unit"
)

// maxGenerated bounds what is kept of a generator's output.
const maxGenerated = 1 << 20

// settling is how long requests that a generator gave up are left to end.
const settling = 100 * time.Millisecond

// leastTruth is what an error is relative to where the truth is less, in
// nanoseconds: 2 % of it are 100 µs.
const leastTruth = 5e6

// leastSeen is the share of the requests due below which the server's log is of another
// load than was asked for.
const leastSeen = 0.98

// closing is how long what is stopped may take to end, a server to write its log.
const closing = 5 * time.Second

// Options say what to run. All but CPUs and Note are required.
type Options struct {
	Arm      study.Arm // the generator
	Program  arm.Program
	Server   arm.Program
	Workload study.Workload
	Length   time.Duration // that the generator is told to go on for, rounded up to whole seconds
	Pins     record.Pinning
	Note     func(text string) // told what could not be stopped; nil: nobody is
}

// generation is one run.
type generation struct {
	Options
	seconds int
	dir     string // the server's working directory, where its log is
	server  *arm.Process
	since   time.Time // just before the generator was started
	ending  arm.Ending
	out     capped // its standard output
	errs    capped // its standard error
}

// ErrServer marks a run for which the server did not get ready.
var ErrServer = errors.New("waiting for the server")

// Run runs the generator to its end and fills in what it and the server saw. The error is
// what keeps the trial from counting.
func Run(ctx context.Context, o Options, t *record.Trial) error {
	g := &generation{Options: o, seconds: int(math.Ceil(o.Length.Seconds()))}
	var err error
	if g.dir, err = os.MkdirTemp("", "tare-server-"); err != nil {
		return fmt.Errorf("making the server's directory: %w", err)
	}
	defer os.RemoveAll(g.dir)
	if err := g.serve(ctx); err != nil {
		return err
	}
	defer g.stop(g.server) // a second time does nothing
	cpus := env.This().CPUTime()
	before, berr := g.server.Usage(false)
	if err := g.run(ctx); err != nil {
		return err
	}
	after, aerr := g.server.Usage(false)
	if part, known := env.This().CPUTime().Withheld(cpus); known {
		t.Metrics["host_withheld"] = part
	}
	if socks, err := g.server.Sockets(); err == nil {
		t.Metrics["time_wait"] = float64(socks["TIME_WAIT"])
	}
	if err := g.settle(ctx); err != nil {
		return err
	}
	if err := g.keep(t); err != nil {
		return err
	}
	if berr == nil && aerr == nil {
		t.Metrics["cpu_per_request"] = float64(after.CPU-before.CPU) / float64(t.Requests)
	}
	return g.compare(t)
}

// pinned are CPUs that a process is kept on; nil leaves it free.
func (g *generation) pinned(cpus []int) []int {
	if !g.Pins.Disjoint {
		return nil
	}
	return cpus
}

// serve starts the server and waits for its first correct answer.
func (g *generation) serve(ctx context.Context) error {
	var err error
	g.server, err = arm.Start(ctx, g.Server, arm.StartOptions{CPUs: g.pinned(g.Pins.Specimen), Dir: g.dir, Grace: closing})
	if err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	ready, cancel := context.WithTimeout(ctx, answer.ReadyWithin)
	defer cancel()
	_, err = g.server.Ready(ready, func(ctx context.Context) error { return answer.Ask(ctx, g.server.URL(), g.Workload.Targets[0]) })
	if err != nil {
		g.stop(g.server)
		return fmt.Errorf("%w: %w", ErrServer, err)
	}
	return nil
}

// run runs the generator to its end.
func (g *generation) run(ctx context.Context) error {
	p := g.Program
	args, _ := g.Arm.Call(g.Workload)
	expand := strings.NewReplacer(
		"${TARE_URL}", g.server.URL()+g.Workload.Targets[0].Path,
		"${TARE_CONNECTIONS}", strconv.Itoa(g.Workload.Connections),
		"${TARE_RATE}", plain(g.Workload.Rate.PerSecond),
		"${TARE_RATE_EACH}", plain(g.Workload.Rate.PerSecond/float64(g.Workload.Connections)),
		"${TARE_SECONDS}", strconv.Itoa(g.seconds))
	p.Under, p.Args = g.Arm.Under, append([]string(nil), p.Args...)
	for _, a := range args {
		p.Args = append(p.Args, expand.Replace(a))
	}
	g.since = time.Now()
	proc, err := arm.Start(ctx, p, arm.StartOptions{Addr: g.server.Addr(), CPUs: g.pinned(g.Pins.Instrument), Stdout: &g.out, Stderr: &g.errs})
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	defer g.stop(proc)
	// Twice as long and half a minute is for tools that wait for what they sent.
	patience := time.Duration(2*g.seconds)*time.Second + 30*time.Second
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if g.ending, err = proc.Wait(waiting); err != nil {
		return fmt.Errorf("the generator did not end within %v: %w", patience, err)
	}
	return nil
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (g *generation) stop(p *arm.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	if err := p.Stop(ctx); err != nil && g.Note != nil {
		g.Note(fmt.Sprintf("stopping arm: %v", err))
	}
}

// settle stops the server, after the requests under way have ended, so that
// its log is whole.
func (g *generation) settle(ctx context.Context) error {
	select {
	case <-g.server.Exited():
		return errors.New("the server died under load")
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settling):
	}
	g.stop(g.server)
	if g.server.Killed() {
		return fmt.Errorf("the server did not end within %v of being asked to: its log may lack requests", closing)
	}
	return nil
}

// keep turns what the generator printed and used into metrics.
func (g *generation) keep(t *record.Trial) error {
	said, err := figures(append(g.errs.b, g.out.b...), g.Arm.Reports)
	if err != nil {
		return errors.Join(fmt.Errorf("reading what the generator printed: %w", err), g.ending.Err)
	}
	if g.ending.Err != nil {
		// It reports all the same. To leave such trials out would be to leave
		// out those that a tool itself finds wanting.
		t.Warnings = append(t.Warnings, "the generator ended with "+g.ending.Err.Error())
	}
	if len(said.missing) > 0 {
		t.Warnings = append(t.Warnings, "the generator does not report "+strings.Join(said.missing, ", "))
	}
	if said.requests == 0 {
		return errors.New("the generator reports no request that was answered")
	}
	maps.Copy(t.Metrics, said.times)
	t.Requests, t.Elapsed = said.requests, g.ending.Elapsed
	n, m := float64(said.requests), t.Metrics
	m["throughput"] = n / t.Elapsed.Seconds()
	m["generator_cpu_per_request"] = float64(g.ending.CPU) / n
	m["generator_cpu"] = g.ending.CPU.Seconds() / t.Elapsed.Seconds() / float64(max(1, len(g.Pins.Instrument)))
	if g.ending.PeakRSS > 0 {
		m["generator_rss"] = float64(g.ending.PeakRSS)
	}
	return nil
}

// compare holds what the generator reports against the server's log, if there
// is one.
func (g *generation) compare(t *record.Trial) error {
	log, err := visit.Read(filepath.Join(g.dir, visit.File), g.since)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.Metrics["count_error"] = math.Abs(float64(len(log)) - float64(t.Requests))
	if g.Workload.Schedule == "closed" || g.Arm.Open == nil {
		return nil // no open loop: there is no intended start to be true to
	}
	saw, due := float64(len(log)), g.Workload.Rate.PerSecond*float64(g.seconds)
	if math.Abs(saw-due) > 1 {
		why := fmt.Sprintf("the server saw %s of the %.0f that were due: their intended starts are not known", unit.Plural(len(log), "request"), due)
		if min(saw, due) < leastSeen*max(saw, due) {
			t.Invalid = append(t.Invalid, why)
		} else {
			t.Warnings = append(t.Warnings, why)
		}
		return nil
	}
	truth := visit.Responses(log, g.Workload.Rate.PerSecond)
	for _, q := range quantiles() {
		said, ok := t.Metrics[q.reported]
		if !ok {
			continue
		}
		is := float64(truth.Quantile(q.at))
		t.Metrics[q.off] = math.Abs(said-is) / max(is, leastTruth)
	}
	return nil
}

// capped keeps the first bytes written to it and drops the rest.
type capped struct{ b []byte }

func (c *capped) Write(b []byte) (int, error) {
	c.b = append(c.b, b[:min(len(b), maxGenerated-len(c.b))]...)
	return len(b), nil
}
