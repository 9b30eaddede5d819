package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
)

// costCmd tells who in a running service spends what.
type costCmd struct {
	URL         string        `arg:"" optional:"" name:"url" help:"A service with net/http/pprof: its address, or the URL of its profiles if that is not /debug/pprof/."`
	PID         int           `name:"pid" type:"pid" help:"Watch a process from outside instead, by its number; nothing is needed in it. Needs Linux and root." placeholder:"N"`
	Cgroup      string        `help:"Watch the processes of a control group: its directory." placeholder:"PATH"`
	Container   string        `help:"Watch the processes of a container: the beginning of its ID." placeholder:"ID"`
	Hz          int           `help:"With --pid, --cgroup, --container: samples a second of each CPU (default: 499)." placeholder:"N"`
	Count       bool          `default:"true" negatable:"" help:"With --pid, --cgroup, --container: count requests for a tenth of the time, by a probe where they begin, so that costs come out per request."`
	Marks       bool          `help:"With --pid: also watch every call of the owners by the clock, for counts, wall time and quantiles."`
	Owner       []string      `sep:"none" help:"With --marks: watch only this owner, named package.Function or file.go:line; repeatable." placeholder:"NAME"`
	MaxOverhead cli.Percent   `default:"5%" help:"With --marks: the most it may cost the process, of the CPU it uses."`
	Profile     []string      `sep:"none" help:"Saved profile to read instead, CPU or allocations; repeatable." placeholder:"FILE"`
	For         time.Duration `default:"30s" help:"How long to profile, in whole seconds."`
	Load        string        `help:"URL to load meanwhile, so that costs come out per request." placeholder:"URL"`
	Conns       int           `name:"connections" short:"c" default:"64" help:"With --load: connections kept busy; with --rate the most that may be open."`
	Rate        float64       `short:"r" help:"With --load: requests a second, whatever the answers do (0: as fast as the connections go)." placeholder:"N"`
	Header      []string      `short:"H" sep:"none" help:"With --load: a header field to send; repeatable." placeholder:"NAME: VALUE"`
	Requests    float64       `help:"Requests that the service answered meanwhile, if they were counted elsewhere." placeholder:"N"`
	Study       string        `help:"Show the arms of a run instead, from the profiles that it kept: its folder, or its name below runs." placeholder:"RUN"`
	Arm         string        `help:"With --study: only this arm."`
	Workload    string        `help:"With --study: only under this workload."`
	Waits       bool          `help:"Also record an execution trace, for at most 5 s: what requests wait for. That costs the service CPU besides."`
	JSON        bool          `name:"json" help:"Print JSON."`
	HTML        string        `name:"html" help:"Write the table, the causes and a flame graph as one HTML file." placeholder:"FILE"`
	Folded      string        `help:"Write stacks of the CPU profile, headed by their owners, for flame graphs." placeholder:"FILE"`
	Labelled    string        `name:"pprof" help:"Write the CPU profile with labels owner and cause, for go tool pprof -tagroot owner." placeholder:"FILE"`
}

// Help says what the table means.
func (c *costCmd) Help() string {
	return `Examples:

  tare cost localhost:6060                       a service that exposes pprof
  tare cost --load http://localhost:8080/users localhost:6060
  tare cost --pid 4711                           any Go service, from outside
  tare cost --container 3f2a --load http://localhost:8080/
  tare cost --profile cpu.pb.gz --profile allocs.pb.gz --requests 120000
  tare cost --study nesting-run --arm three      an arm of a run

Every stack of the profile is charged to one owner: the innermost middleware,
router, engine or handler on it, told apart by file and line. Self is what the
owner itself spent, with ± half the width of the 95 % interval that comes of how
many stacks were seen, and of how requests were counted; total has the owners inside it as well. The collector's
background work is shared out by bytes allocated.

The profiler costs the service 6 to 19 % of its CPU while it runs, and sees
nothing of the kernel but that it was called. From outside (--pid and the like)
it is about 1.5 %, the functions of the kernel are seen as well, the service need
not know, and it may be stripped or in a container; but there is nothing about
memory. That takes Linux 5.15 and root, or the capabilities CAP_BPF, CAP_PERFMON
and CAP_SYS_PTRACE; without them --pid looks for the service's own profiles on the
ports on which it listens.`
}

// Run profiles, or reads profiles, and shows who spent what.
func (c *costCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Study != "" {
		return c.ofStudy(t)
	}
	if err := cmp.Or(c.check(), c.useless(t)); err != nil {
		return err
	}
	bill := &bill{window: cost.Window{Requests: c.Requests}}
	var err error
	switch {
	case len(c.Profile) > 0:
		bill.source = strings.Join(c.Profile, ", ")
		err = bill.read(c.Profile)
	case c.outside():
		err = c.cheapest(ctx, t, bill)
	default:
		err = c.capture(ctx, t, bill)
	}
	if err != nil {
		return err
	}
	bill.total = bill.sum()
	err = c.write(bill)
	if c.JSON {
		err = errors.Join(err, t.JSON(bill.total))
	} else {
		err = errors.Join(err, bill.text(t))
	}
	if err == nil && ctx.Err() != nil {
		return &cli.Failure{Status: cli.ExitInterrupted} // a warning says so
	}
	if err == nil && bill.unmarked != nil {
		return fmt.Errorf("calls were not watched: %w", bill.unmarked)
	}
	return err
}

// sources counts what the command was told to look at.
func (c *costCmd) sources() int {
	n := 0
	for _, named := range []bool{c.URL != "", len(c.Profile) > 0, c.PID != 0, c.Cgroup != "", c.Container != ""} {
		if named {
			n++
		}
	}
	return n
}

func (c *costCmd) check() error {
	const remedy = "tare cost URL, tare cost --pid N, or tare cost --profile FILE"
	if err := c.checkOutside(); err != nil {
		return err
	}
	switch n := c.sources(); {
	case n == 0:
		return cli.Usage(remedy, errors.New("nothing to look at: neither a URL nor a process nor a profile"))
	case n > 1:
		return cli.Usage(remedy, errors.New("a URL, saved profiles, --pid, --cgroup and --container exclude one another"))
	case c.Waits && c.URL == "":
		return cli.Usage("give the service's URL", errors.New("--waits does nothing for saved profiles"))
	case c.Load != "" && len(c.Profile) > 0:
		return cli.Usage("say --requests N", errors.New("--load does nothing for saved profiles"))
	case c.Load != "" && c.Requests > 0:
		return cli.Usage("leave --requests out: --load counts them", errors.New("--load and --requests exclude one another"))
	case c.For < time.Second || c.For > time.Hour || c.For%time.Second != 0:
		return cli.Usage("", fmt.Errorf("--for %s: whole seconds, at least 1s, at most 1h", c.For))
	case c.Requests < 0 || c.Rate < 0 || c.Conns < 1:
		return cli.Usage("", errors.New("--requests, --rate and --connections are no less than 0, 0 and 1"))
	case c.Arm != "" || c.Workload != "":
		return cli.Usage("tare cost --study RUN --arm NAME", errors.New("--arm and --workload are of a run: --study names it"))
	case c.Rate > 0 && c.Load == "":
		return cli.Usage("name the URL to load: --load URL", errors.New("--rate without --load"))
	case len(c.Header) > 0 && c.Load == "":
		return cli.Usage("name the URL to load: --load URL", errors.New("--header without --load"))
	}
	if _, err := cli.HeaderFields("--header", c.Header); err != nil {
		return err
	}
	return cli.CheckOutputs(c.outputs(), c.Profile...)
}

// useless refuses what has a default and does nothing here.
func (c *costCmd) useless(t *cli.Terminal) error {
	return cmp.Or(
		t.RefuseFlags(len(c.Profile) > 0, "for saved profiles", "for"),
		t.RefuseFlags(!c.outside(), "without --pid, --cgroup or --container", "count"),
		t.RefuseFlags(!c.Marks, "without --marks", "max-overhead"),
		t.RefuseFlags(c.Load == "", "without --load", "connections"),
	)
}

// capture profiles what the service at the URL spends.
func (c *costCmd) capture(ctx context.Context, t *cli.Terminal, b *bill) error {
	s, err := pprof.Find(c.URL)
	if err != nil {
		return cli.Usage("such as localhost:6060", err)
	}
	return c.profile(ctx, t, b, s)
}

// profile has a service profile CPU and allocations side by side, under load if
// that is asked for.
func (c *costCmd) profile(ctx context.Context, t *cli.Terminal, b *bill, s *pprof.Service) error {
	b.source = s.String()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	under, err := c.offer(ctx)
	if err != nil {
		return err
	}
	t.Note("profiling %s for %s; %s", s, c.For, c.price())
	type taken struct {
		p   *pprof.Profile
		err error
	}
	allocs := make(chan taken, 1)
	go func() {
		p, err := s.Allocs(ctx, c.For)
		allocs <- taken{p, err}
	}()
	var at looked
	at.profiled = time.Now()
	b.cpu, b.local, err = capture.CPU(ctx, s, c.For)
	if err != nil {
		return unprofiled(err)
	}
	if b.cpu.Kind != pprof.CPU {
		return fmt.Errorf("%s has no CPU profile", s)
	}
	b.warnings = append(b.warnings, b.cpu.Warnings...)
	a := <-allocs
	b.allocs = a.p
	if a.err != nil {
		b.warnings = append(b.warnings, fmt.Errorf("no allocation profile, so neither bytes nor shares of the collector: %w", a.err))
	}
	b.window.Duration = b.cpu.Duration
	b.dateAllocs()
	if c.Waits {
		at.traced = time.Now()
		if b.waits, err = trace(ctx, s, c.tracing()); err != nil {
			b.warnings = append(b.warnings, fmt.Errorf("no execution trace, so no waits: %w", err))
		} else if b.waits.Broken != nil {
			b.warnings = append(b.warnings, b.waits.Broken)
		}
	}
	if under != nil {
		return under.count(cancel, b, at)
	}
	return nil
}

// trace records what goroutines wait for.
func trace(ctx context.Context, s *pprof.Service, d time.Duration) (*exectrace.Trace, error) {
	raw, err := s.Trace(ctx, d)
	if err != nil {
		return nil, err
	}
	return exectrace.Read(bytes.NewReader(raw))
}

// unprofiled explains why a service cannot be profiled.
func unprofiled(err error) *cli.Failure {
	f := &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: exposes}
	var name *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		f.Status = cli.ExitInterrupted
		f.Err = errors.New("interrupted: a service hands its profile over at the end, so there is nothing to show")
		f.Hint = "--for 5s takes less time; tare cost --pid N keeps what it has seen when it is interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		f.Hint = "it took the connection and did not answer in time: is it stopped, stuck or overloaded? tare cost --pid N asks nothing of it"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Hint = "nothing listens there: start the service, or check the port"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		f.Hint = "it closed the connection before it had answered: did it end or begin anew meanwhile, and is that a port of plain HTTP?"
	case errors.Is(err, pprof.ErrTooLarge), errors.Is(err, pprof.ErrImplausible):
		f.Hint = "is that a Go service's pprof end point?"
	case errors.As(err, &name):
		f.Hint = "no machine of that name is known; if a file or folder was meant, there is none"
		if _, err := os.Stat(name.Name); err == nil {
			f.Hint = name.Name + " is a file or folder here and was taken for a machine: saved files are read by tare cost --profile FILE, tare doctor --from FILE, tare flame FILE, tare trace FILE and tare diff A B"
		}
	}
	return f
}

// exposes is what a service must do to be profiled.
const exposes = `the service must expose its profiles: import _ "net/http/pprof" and serve http.DefaultServeMux on a port of its own`

// offer starts the load that was asked for; nil if none was.
func (c *costCmd) offer(ctx context.Context) (*offered, error) {
	return loading{c.Load, c.Header, c.Conns, c.Rate, c.For}.offer(ctx)
}

// looked is when a profile and a trace were begun under a load; zero if they were not.
type looked struct{ profiled, traced time.Time }

// count ends the load and works out how many requests the profile saw, and the trace:
// while that is recorded, and read, requests go slower.
func (u *offered) count(stop func(), b *bill, at looked) error {
	warnings, err := u.end(stop)
	if err != nil {
		return err
	}
	b.window.Requests = math.Round(float64(u.res.Counts.Answered()) * b.window.Duration.Seconds() / u.res.Elapsed.Seconds())
	if b.waits != nil && !at.traced.IsZero() {
		profiled, traced := math.Round(u.within(at.profiled, b.window.Duration)), u.within(at.traced, b.waits.Duration)
		if profiled >= 1 && traced >= 1 { // else CPU would be told a second and waits a request
			b.window.Requests, b.traced = profiled, traced
		}
	}
	b.warnings = append(b.warnings, warnings...)
	return nil
}

// write writes the files asked for, each that can be, whole or not at all.
func (c *costCmd) write(b *bill) error {
	err := cli.WriteFile(c.HTML, b.page)
	if c.Folded == "" && c.Labelled == "" {
		return err
	}
	if b.cpu == nil {
		return errors.Join(err, cli.Usage("", errors.New("--folded and --pprof need a CPU profile")))
	}
	b.cpu.SetRequests(b.window.Requests, b.window.Margin)
	return errors.Join(err, cli.WriteFile(c.Folded, b.fold), cli.WriteFile(c.Labelled, b.cpu.Label))
}

// read takes saved profiles, one of each kind at most, and the requests that the CPU
// profile has a note of if nobody else counted them.
func (b *bill) read(files []string) error {
	for _, name := range files {
		p, err := readProfile(name)
		if err != nil {
			return err
		}
		at := &b.cpu
		if p.Kind == pprof.Allocs {
			at = &b.allocs
		}
		if *at != nil {
			return cli.Usage("one of each kind; merge profiles with go tool pprof -proto", fmt.Errorf("%s: a second %s profile", name, p.Kind))
		}
		*at = p
		b.warnings = append(b.warnings, p.Warnings...)
	}
	if b.cpu != nil {
		b.window.Duration = b.cpu.Duration
		if b.window.Requests == 0 {
			b.window.Requests, b.window.Margin = b.cpu.Requests()
		}
	}
	b.dateAllocs()
	return nil
}

// dateAllocs warns of an allocation profile that is not of the CPU profile's time, since
// both are divided by the same. One that does not say its time is of all that was
// allocated since the program began.
func (b *bill) dateAllocs() {
	if b.cpu == nil || b.allocs == nil {
		return
	}
	const apart, slack = 1.5, 2 // a service takes a moment to begin and to end
	const meant = "so bytes and allocations are not those of the requests or seconds that they are divided by, though their proportions hold: /debug/pprof/allocs?seconds=30 is of 30 s"
	switch all, part := b.allocs.Duration.Seconds(), b.cpu.Duration.Seconds(); {
	case all == 0:
		b.warnings = append(b.warnings, errors.New("the allocation profile is of all since the program began, "+meant))
	case part > 0 && math.Abs(all-part) > slack && (all > apart*part || part > apart*all):
		b.warnings = append(b.warnings, fmt.Errorf("the allocation profile is of %s s and the CPU profile of %s, %s", tenths(all), tenths(part), meant))
	}
}
