package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/load"
)

// diffCmd tells what costs more in one set of profiles than in another.
type diffCmd struct {
	A      string        `arg:"" help:"Profiles: files with commas between, a folder of them, a service's URL, a process as pid:N, or an arm of a run as RUN:ARM."`
	B      string        `arg:"" help:"What to compare with A: the like."`
	For    time.Duration `default:"5s" help:"Of a service: how long one capture is, in whole seconds."`
	Repeat int           `default:"5" help:"Of a service: how many captures to take; two services take turns."`
	Load   []string      `sep:"none" help:"URL to load meanwhile, so that costs are per request; once for A and once for B." placeholder:"URL"`
	Conns  int           `name:"connections" short:"c" default:"16" help:"With --load: connections kept busy; with --rate the most that may be open."`
	Rate   float64       `short:"r" help:"With --load: requests a second (0: as fast as the connections go)." placeholder:"N"`
	Header []string      `short:"H" sep:"none" help:"With --load: a header field to send, to both; repeatable." placeholder:"NAME: VALUE"`
	Q      float64       `default:"0.05" help:"Share of false findings, among those reported, that is allowed on average."`
	Keep   string        `help:"Also write the captures of services into this folder, as a-1.cpu.pb.gz and so on." placeholder:"DIR"`
	JSON   bool          `name:"json" help:"Print JSON."`
	HTML   string        `name:"html" help:"Write the table and a differential flame graph as one HTML file." placeholder:"FILE"`
}

// Help says what is compared and how.
func (c *diffCmd) Help() string {
	return `Examples:

  tare diff before/ after/                 folders of saved profiles
  tare diff a1.pb.gz,a2.pb.gz,a3.pb.gz b1.pb.gz,b2.pb.gz,b3.pb.gz
  tare diff --load http://localhost:8080/ --load http://localhost:8081/ localhost:6060 localhost:6061
  tare diff pid:4711 pid:4712
  tare diff runs/chain:nested runs/chain:chain

Owners are compared by their own cost, functions within an owner by what they and
their callees cost there, wherever they stand on the stack. A difference is told
from noise by how the captures of a side differ among themselves: repeat them,
best each in a process started afresh. What is not told apart is left out of the
table and grey in the graph.`
}

// sides are the captures of A and B.
type sides struct {
	source      string
	cpu, allocs []diff.Capture
	oneProcess  bool
	warnings    []error // of the captures, one of each kind
}

// Run captures or reads, compares, and shows what differs.
func (c *diffCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if err := cmp.Or(c.check(), t.RefuseFlags(len(c.Load) == 0, "without --load", "connections")); err != nil {
		return err
	}
	a, b := &sides{source: c.A}, &sides{source: c.B}
	if err := c.gather(ctx, t, a, b); err != nil {
		return err
	}
	d, err := c.compare(a, b)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("interrupted: of A %d captures were taken, of B %d", max(len(a.cpu), len(a.allocs)), max(len(b.cpu), len(b.allocs))))
	}
	err = cli.WriteFile(c.HTML, func(w io.Writer) error { return page.WriteDiff(w, d) }) // the table is shown all the same
	if c.JSON {
		err = errors.Join(err, t.JSON(d))
	} else {
		err = errors.Join(err, diffText(t, d))
	}
	if err == nil && ctx.Err() != nil {
		return &cli.Failure{Status: cli.ExitInterrupted} // a warning says so
	}
	return err
}

func (c *diffCmd) check() error {
	switch {
	case c.For < time.Second || c.For > time.Hour || c.For%time.Second != 0:
		return cli.Usage("", fmt.Errorf("--for %s: whole seconds, at least 1s, at most 1h", c.For))
	case c.Repeat < 1 || c.Repeat > 1000:
		return cli.Usage("", fmt.Errorf("--repeat %d: at least 1, at most 1000", c.Repeat))
	case !(c.Q > 0 && c.Q < 1):
		return cli.Usage("such as 0.05", fmt.Errorf("--q %g: more than 0 and less than 1", c.Q))
	case c.Rate < 0 || c.Conns < 1:
		return cli.Usage("", errors.New("--rate and --connections are no less than 0 and 1"))
	case c.Rate > 0 && len(c.Load) == 0:
		return cli.Usage("name the URLs to load: --load URL --load URL", errors.New("--rate without --load"))
	case len(c.Header) > 0 && len(c.Load) == 0:
		return cli.Usage("name the URLs to load: --load URL --load URL", errors.New("--header without --load"))
	case len(c.Load) != 0 && len(c.Load) != 2:
		return cli.Usage("--load URL-OF-A --load URL-OF-B", fmt.Errorf("--load given %d times, want it for A and for B", len(c.Load)))
	}
	if _, err := cli.HeaderFields("--header", c.Header); err != nil {
		return err
	}
	if c.Keep != "" {
		if info, err := os.Stat(c.Keep); err != nil || !info.IsDir() {
			return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("--keep %s: there is no such folder", c.Keep), Hint: "create the folder first"}
		}
	}
	return cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: c.HTML}})
}

// gather takes the captures of both sides. Services take turns, and who comes
// first changes, so that what the machine does meanwhile hits both. If it is
// interrupted, it keeps those that are whole, as long as there is one of each side.
func (c *diffCmd) gather(ctx context.Context, t *cli.Terminal, a, b *sides) error {
	var services []int
	for i, s := range []*sides{a, b} {
		found, err := s.read()
		if err != nil {
			return err
		}
		if !found {
			s.oneProcess = true
			services = append(services, i)
		}
	}
	if err := t.RefuseFlags(len(services) == 0, "for saved profiles", "load", "for", "repeat", "keep"); err != nil {
		return err
	}
	if err := sameSource(a, b); err != nil {
		return err
	}
	for n := range c.Repeat {
		for k := range services {
			i := services[(n+k)%len(services)]
			err := c.capture(ctx, t, []*sides{a, b}[i], target{i, n})
			if ctx.Err() != nil && len(a.cpu) > 0 && len(b.cpu) > 0 {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// process begins the name of a side that is watched from outside.
const process = "pid:"

// sameSource refuses sides of which one was sampled from outside and the other by the
// service's own profiler. These differ by some per cent of every owner, and by rows
// that only one of them has, which would be taken for a difference of the programs.
func sameSource(a, b *sides) error {
	for _, s := range [][2]*sides{{a, b}, {b, a}} {
		if s[0].outside() && s[1].inside() {
			return cli.Usage("take both sides by pid:N, or both from the services' own profiles",
				fmt.Errorf("%s is sampled from outside and %s by the service's own profiler, which see the same program differently", s[0].shown(), s[1].shown()))
		}
	}
	return nil
}

// outside reports whether a side's CPU is sampled from outside: there the kernel's
// own functions are seen.
func (s *sides) outside() bool {
	if s.oneProcess {
		return strings.HasPrefix(s.source, process)
	}
	return slices.ContainsFunc(s.cpu, func(c diff.Capture) bool {
		return slices.ContainsFunc(c.Stacks, func(s cost.Stack) bool {
			return len(s.Frames) > 0 && strings.HasPrefix(s.Frames[0].Func, "[kernel]")
		})
	})
}

// inside reports whether a side's CPU is sampled by the service's own profiler.
func (s *sides) inside() bool { return (s.oneProcess || len(s.cpu) > 0) && !s.outside() }

// target is which side is captured, and for which time, from 0.
type target struct{ side, nth int }

// capture profiles a service once more.
func (c *diffCmd) capture(ctx context.Context, t *cli.Terminal, s *sides, at target) error {
	one := costCmd{URL: s.source, For: c.For, Count: true, Conns: c.Conns, Rate: c.Rate, Header: c.Header}
	if len(c.Load) > 0 {
		one.Load = c.Load[at.side]
	}
	b, take := &bill{}, one.capture
	if pid, ok := strings.CutPrefix(s.source, process); ok {
		n, err := strconv.Atoi(pid)
		if err != nil || n < 1 {
			return cli.Usage("such as pid:4711", fmt.Errorf("%q is no process", s.source))
		}
		one.URL, one.PID, take = "", n, one.watch
	}
	if err := take(ctx, t, b); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.warn(b.warnings)
	for _, p := range []*pprof.Profile{b.cpu, b.allocs} {
		if p == nil {
			continue
		}
		p.SetRequests(b.window.Requests, b.window.Margin)
		s.add(p.Kind, p.Sampled(), b.window)
		if c.Keep != "" {
			kind := map[pprof.Kind]string{pprof.CPU: "cpu", pprof.Allocs: "allocs"}[p.Kind]
			name := fmt.Sprintf("%c-%d.%s.pb.gz", 'a'+at.side, at.nth+1, kind)
			if err := cli.WriteFile(filepath.Join(c.Keep, name), p.Write); err != nil {
				return err
			}
		}
	}
	return nil
}

// shown is the source as others may read it: without a password that is in a URL.
func (s *sides) shown() string {
	if s.oneProcess && strings.Contains(s.source, "@") {
		service, err := pprof.Find(s.source)
		if err != nil {
			return load.Shown(loadverb.AbsoluteURL(s.source))
		}
		return service.String()
	}
	return s.source
}

func (s *sides) add(kind pprof.Kind, sampled []cost.Stack, w cost.Window) {
	c := diff.Capture{Stacks: sampled, Window: w}
	if kind == pprof.Allocs {
		s.allocs = append(s.allocs, c)
	} else {
		s.cpu = append(s.cpu, c)
	}
}

// warn adds what no capture before has warned of, but for its figures.
func (s *sides) warn(warnings []error) {
	kind := func(err error) string { return verdict.Figureless(err.Error()) }
	for _, w := range warnings {
		if !slices.ContainsFunc(s.warnings, func(o error) bool { return kind(o) == kind(w) }) {
			s.warnings = append(s.warnings, w)
		}
	}
}

// read reads what is saved; it reports whether there is any such thing, rather
// than a service.
func (s *sides) read() (bool, error) {
	if strings.Contains(s.source, "://") {
		return false, nil
	}
	if info, err := os.Stat(s.source); err == nil && info.IsDir() {
		return true, s.readFolder()
	}
	names := strings.Split(s.source, ",")
	if _, err := os.Stat(names[0]); err == nil || len(names) > 1 || strings.HasSuffix(names[0], ".gz") {
		return true, s.readFiles(names)
	}
	if found, err := s.readArm(); found || err != nil {
		return true, err
	}
	if !strings.Contains(s.source, ":") && (strings.HasSuffix(s.source, "/") || strings.HasPrefix(s.source, "/") || strings.HasPrefix(s.source, ".")) {
		return true, &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s: there is no such file or folder", s.source), Hint: "a service is named by its URL or as HOST:PORT"}
	}
	return false, nil
}

func (s *sides) readFolder() error {
	var names []string
	for _, pattern := range []string{"*.pb.gz", "*.pprof", "*.prof"} {
		found, err := filepath.Glob(filepath.Join(s.source, pattern))
		if err != nil {
			return err
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: no profiles in it: no *.pb.gz, *.pprof or *.prof", s.source)
	}
	return s.readFiles(names)
}

func (s *sides) readFiles(names []string) error {
	for _, name := range names {
		p, err := readProfile(name)
		if err != nil {
			return err
		}
		s.warn(p.Warnings)
		requests, margin := p.Requests()
		s.add(p.Kind, p.Sampled(), cost.Window{Duration: p.Duration, Requests: requests, Margin: margin})
	}
	return nil
}

func readProfile(name string) (*pprof.Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := pprof.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
