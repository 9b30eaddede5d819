package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/cost/timeline"
)

// traceCmd tells what slow requests waited for.
type traceCmd struct {
	From    string        `arg:"" optional:"" name:"url|file" help:"A service with net/http/pprof, or a trace that was saved: by --save, runtime/trace or the flight recorder."`
	PID     int           `name:"pid" type:"pid" help:"A process of this machine instead: its profiles are looked for on the ports on which it listens." placeholder:"N"`
	Slower  time.Duration `name:"slower-than" help:"From what duration on a request is slow. Left out: the slowest hundredth is." placeholder:"DURATION"`
	For     time.Duration `default:"5s" help:"How long to trace, in whole seconds, at most 1m."`
	Load    string        `help:"URL to load meanwhile." placeholder:"URL"`
	Conns   int           `name:"connections" short:"c" default:"64" help:"With --load: connections kept busy; with --rate the most that may be open."`
	Rate    float64       `short:"r" help:"With --load: requests a second, whatever the answers do (0: as fast as the connections go)." placeholder:"N"`
	Header  []string      `short:"H" sep:"none" help:"With --load: a header field to send; repeatable." placeholder:"NAME: VALUE"`
	Samples bool          `default:"true" negatable:"" help:"Profile the CPU meanwhile, so that the trace shows where requests ran."`
	Top     int           `default:"3" help:"How many of the slowest requests to show one by one."`
	JSON    bool          `name:"json" help:"Print JSON."`
	HTML    string        `name:"html" help:"Write it as one HTML file, each of the slowest requests as a bar." placeholder:"FILE"`
	Save    string        `help:"Keep the trace, to read it again: tare trace FILE, go tool trace FILE." placeholder:"FILE"`
}

// Help says what is counted and what tracing costs.
func (c *traceCmd) Help() string {
	return `Examples:

  tare trace --slower-than 50ms localhost:6060
  tare trace --load http://localhost:8080/users localhost:6060
  tare trace --pid 4711
  tare trace slow-20261121T164423.123456.trace   a snapshot of the flight recorder

Every request's whole time is accounted for: running, ready without a processor
(scheduler), helping the collector, waiting for a lock, a channel, a call to
another service, the client, a timer, a system call; each with its owner.

A request begins when the server is woken by its first bytes. What passed before,
in the network and the kernel, is not in the trace.

Tracing costs the service CPU while it lasts, 2 to 12 % where it was tried and up to
18 % with samples; see docs/trace.md.`
}

// Run records or reads a trace and shows what slow requests waited for.
func (c *traceCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if err := cmp.Or(c.check(), t.RefuseFlags(c.Load == "", "without --load", "connections")); err != nil {
		return err
	}
	s := &story{}
	f, err := c.open(ctx, t, s)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.Requests, err = exectrace.ReadRequests(f, exectrace.Options{SlowerThan: c.Slower, Top: max(1, c.Top)}); err != nil {
		err = fmt.Errorf("%s: %w", s.Source, err)
		switch {
		case s.saved:
			return err
		case ctx.Err() != nil: // the service writes a second of it at a time
			return untraced(ctx.Err())
		case isTrace(f): // of a form that others may know
			return errors.Join(untraced(err), c.keep(f))
		}
		return untraced(err) // what was fetched is no trace
	}
	s.Requests.Warnings = append(s.warnings, s.Requests.Warnings...)
	err = errors.Join(c.keep(f), cli.WriteFile(c.HTML, func(w io.Writer) error { return timeline.Write(w, s.Source, s.Requests) }))
	if c.JSON {
		err = errors.Join(err, t.JSON(s))
	} else {
		err = errors.Join(err, s.text(t, c))
	}
	if err == nil && ctx.Err() != nil {
		return &cli.Failure{Status: cli.ExitInterrupted} // a warning says so
	}
	return err
}

func (c *traceCmd) check() error {
	const remedy = "tare trace URL, tare trace FILE, or tare trace --pid N"
	switch {
	case c.From == "" && c.PID == 0:
		return cli.Usage(remedy, errors.New("nothing to look at"))
	case c.From != "" && c.PID != 0:
		return cli.Usage(remedy, errors.New("a process and a URL or file exclude one another"))
	case c.For < time.Second || c.For > time.Minute || c.For%time.Second != 0:
		return cli.Usage("", fmt.Errorf("--for %s: whole seconds, at least 1s, at most 1m", c.For))
	case c.Slower < 0 || c.Top < 0 || c.Rate < 0 || c.Conns < 1:
		return cli.Usage("", errors.New("--slower-than, --top, --rate and --connections are no less than 0, 0, 0 and 1"))
	case c.Rate > 0 && c.Load == "":
		return cli.Usage("name the URL to load: --load URL", errors.New("--rate without --load"))
	case len(c.Header) > 0 && c.Load == "":
		return cli.Usage("name the URL to load: --load URL", errors.New("--header without --load"))
	}
	return cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: c.HTML}, {Flag: "--save", Path: c.Save}}, c.From)
}

// open returns the trace: the file that was named, or one that is recorded now and
// gone once it is closed.
func (c *traceCmd) open(ctx context.Context, t *cli.Terminal, s *story) (*os.File, error) {
	if info, err := os.Stat(c.From); err == nil && info.Mode().IsRegular() {
		if err := t.RefuseFlags(true, "for a trace that is there already", "load", "save", "for", "samples"); err != nil {
			return nil, err
		}
		s.Source, s.saved = c.From, true
		return os.Open(c.From)
	}
	service, err := c.service(ctx)
	if err != nil {
		return nil, err
	}
	s.Source = service.String()
	f, err := os.CreateTemp("", "tare-*.trace")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name()) // it is there until it is closed
	if err := c.record(ctx, t, s, recording{service, f}); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// recording is a trace being taken.
type recording struct {
	service *pprof.Service
	to      *os.File
}

func (c *traceCmd) record(ctx context.Context, t *cli.Terminal, s *story, r recording) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	under, err := loading{c.Load, c.Header, c.Conns, c.Rate, c.For}.offer(ctx)
	if err != nil {
		return err
	}
	price := priceOfTrace
	if c.Samples {
		price = priceOfBoth
	}
	t.Note("tracing %s for %s; expected to cost it %s of the CPU it uses", r.service, c.For, price)
	sampled := make(chan error, 1)
	go func() {
		if !c.Samples {
			sampled <- nil
			return
		}
		_, err := r.service.CPU(ctx, c.For)
		sampled <- err
	}()
	err = r.service.TraceTo(ctx, c.For, r.to)
	interrupted := err != nil && ctx.Err() != nil
	if err != nil && !interrupted {
		cancel()
		<-sampled
		return untraced(err)
	}
	if interrupted {
		s.warnings = append(s.warnings, "interrupted: what was seen until then is shown")
	}
	if err := <-sampled; err != nil && !interrupted {
		s.warnings = append(s.warnings, fmt.Sprintf("no CPU profile beside the trace, so where requests ran is known by halves: %v", err))
	}
	if under != nil {
		warnings, err := under.end(cancel)
		if err != nil { // such as that nothing was answered: why, is in the trace
			warnings = append(warnings, err)
		}
		s.warnings = append(s.warnings, cli.Texts(warnings)...)
	}
	_, err = r.to.Seek(0, io.SeekStart)
	return err
}

// keep writes the trace to where --save says. Nothing else is written there: it may be
// where a trace was kept before.
func (c *traceCmd) keep(f *os.File) error {
	return cli.WriteFile(c.Save, func(w io.Writer) error { return rewound(w, f) })
}

// isTrace reports whether a file begins as every trace does.
func isTrace(f *os.File) bool {
	const head = "go 1."
	begin := make([]byte, len(head))
	_, err := f.ReadAt(begin, 0)
	return err == nil && string(begin) == head
}

// rewound copies a file from its beginning.
func rewound(w io.Writer, f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, f)
	return err
}

// untraced explains why a service cannot be traced.
func untraced(err error) error {
	f := unprofiled(err)
	switch {
	case f.Status == cli.ExitInterrupted:
		f.Err = errors.New("interrupted before a first second of the trace was there")
		f.Hint = ""
	case f.Hint == exposes:
		f.Hint += "; only one trace may run at a time"
	case errors.Is(err, pprof.ErrTooLarge):
		f.Hint = "a shorter --for makes a smaller trace, and so do fewer requests"
	}
	return f
}

// service finds what is to be traced.
func (c *traceCmd) service(ctx context.Context) (*pprof.Service, error) {
	if c.PID == 0 {
		s, err := pprof.Find(c.From)
		if err != nil {
			return nil, cli.Usage("such as localhost:6060, or a file with a trace", err)
		}
		return s, nil
	}
	return exposed(ctx, c.PID, "trace")
}

// exposed finds a process's profiles on the ports on which it listens. Verb is who
// looks for them.
func exposed(ctx context.Context, pid int, verb string) (*pprof.Service, error) {
	ports, err := proc.Listening(pid)
	if err != nil {
		return nil, unlooked(err)
	}
	if hint := ownNetwork(pid, verb); hint != "" { // here, its ports are other services'
		return nil, &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("process %d is in another network namespace", pid), Hint: hint}
	}
	if len(ports) == 0 {
		return nil, &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("process %d listens on no TCP port", pid), Hint: showsTrace}
	}
	s, err := showing(ctx, ports)
	if s == nil && err == nil {
		err = &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("process %d shows no profiles on the ports on which it listens: %s", pid, numbers(ports)), Hint: showsTrace}
	}
	return s, err
}

// showing finds net/http/pprof on the first of these ports of this machine that shows
// it; nil if none does.
func showing(ctx context.Context, ports []int) (*pprof.Service, error) {
	for _, port := range ports {
		s, err := pprof.Find(net.JoinHostPort("localhost", strconv.Itoa(port)))
		if err != nil {
			return nil, err
		}
		brief, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err = s.Memory(brief)
		cancel()
		if err == nil {
			return s, nil
		}
	}
	return nil, nil
}

// showsTrace is what a service must do to be traced.
const showsTrace = `execution traces come from the service itself: import _ "net/http/pprof" and serve http.DefaultServeMux on a loopback port, or mount serve/middleware/flight`

// numbers lists numbers for people.
func numbers(all []int) string {
	text := make([]string, len(all))
	for i, n := range all {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ", ")
}

// unlooked explains why a process cannot be looked into.
func unlooked(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "is it still running?"}
	case errors.Is(err, fs.ErrPermission):
		return &cli.Failure{Status: cli.ExitFailed, Err: err,
			Hint: "it is another user's: that needs root, or the capability CAP_SYS_PTRACE; a service that exposes its profiles can be named by its URL instead"}
	}
	return err
}

// ownNetwork says how to reach a process by its ports from a network namespace
// that is not this one; "" if it is this one, or not known.
func ownNetwork(pid int, verb string) string {
	facts, err := proc.Read(pid)
	if err != nil || !facts.OwnNetwork {
		return ""
	}
	return fmt.Sprintf("process %d has a network of its own, with ports of its own: nsenter -t %d -n tare %s … looks and loads from there", pid, pid, verb)
}
