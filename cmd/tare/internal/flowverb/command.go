// Package flowverb loads a service with users who take the steps of a file: the verb flow.
package flowverb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/pods"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/internal/task"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/flow"
	"github.com/tarehq/tare/load/flow/script"
	"github.com/tarehq/tare/load/pace"
)

// Command loads with the users of a file.
type Command struct {
	File        string        `arg:"" optional:"" help:"Flow file (YAML)."`
	From        string        `help:"Write FILE, a first flow, from an HTTP archive (HAR) or an OpenAPI 3 document, and send nothing." placeholder:"SOURCE"`
	Profile     string        `enum:",smoke,pressure,stress,spike,soak,breakpoint" default:"" help:"Offer the load of a profile instead of the file's: smoke, pressure, stress, spike, soak or breakpoint." placeholder:"NAME"`
	Rate        string        `short:"r" help:"Open loop: sessions a second, instead of the file's. Also poisson:10, ramp:1-50/1m or steps:1,5,10/30s." placeholder:"RATE"`
	Users       int           `short:"u" help:"Closed loop: number of users, who start again when done, instead of the file's." placeholder:"N"`
	Duration    time.Duration `short:"d" help:"Length of the measured part, instead of the file's or the profile's; with breakpoint of each rate." placeholder:"DURATION"`
	Base        string        `help:"Scheme and host that paths belong to, instead of the file's." placeholder:"URL"`
	Connections int           `short:"c" help:"Most connections to a host at a time (0: 4096)."`
	Insecure    bool          `short:"k" help:"Do not verify certificates."`
	Seed        uint64        `help:"Seed for random arrivals, flows and times to think (0: 1)."`
	PID         int           `name:"pid" type:"pid" help:"Process ID of the service, whose memory is watched (Linux)." placeholder:"N"`
	FailIf      []string      `sep:"none" help:"Exit with status 3 if this is so of sessions, or after 'STEP: ' of a step, such as 'errors>1%' or 'list: p99>50ms'; repeatable." placeholder:"THRESHOLD"`
	JSON        bool          `name:"json" help:"Print JSON instead of the summary."`
	Output      string        `short:"o" help:"Write the JSON to a file, atomically." placeholder:"FILE"`
	HTML        string        `name:"html" help:"Write the summary as one HTML file." placeholder:"FILE"`
	Markdown    string        `help:"Write the summary as Markdown." placeholder:"FILE"`
	Quiet       bool          `short:"q" help:"Print no progress."`
	On          string        `name:"on" help:"Run the whole command in a pod of a Kubernetes cluster: k8s[:NAMESPACE]. Agents on hosts share requests out, not users: what a user does depends on the answers." placeholder:"k8s"`
	Pod         pods.PodFlags `embed:""`

	limits []limit // of FailIf
}

// limit is a threshold of the command line.
type limit struct {
	step      string // "" = sessions
	threshold load.Threshold
}

// Help shows examples.
func (c *Command) Help() string {
	return `Examples:

  tare flow shop.yaml                          the users and the length that the file says
  tare flow shop.yaml --profile smoke          does every step work?
  tare flow shop.yaml -r poisson:20 -d 5m      20 sessions a second, at random
  tare flow shop.yaml --profile soak --pid 4711 -d 30m
  tare flow new.yaml --from site.har           write a first file
  tare flow shop.yaml --on k8s:shop            by a pod in the namespace shop

tare load FILE.yaml does the same. A session is one user's way through a flow. Response
times count from when a user wanted a request, so a stall counts for every user it delayed.

Exit status:

    0    done, and all thresholds held
    1    failed: set-up, no answer, no session completed, or output not written
    2    wrong usage, or a mistake in the file
    3    a threshold failed, or with soak something grew
    4    too few requests or sessions to judge a threshold
    5    the load was not offered: users turned away, or the generator was the bottleneck
    130  interrupted; the report shows what was measured

A failed threshold (3) comes before 5 and 4.`
}

// IsFile reports whether an argument of tare load names a flow file.
func IsFile(arg string) bool {
	ext := strings.ToLower(filepath.Ext(arg))
	return (ext == ".yaml" || ext == ".yml") && !strings.Contains(arg, "://")
}

// Run offers the load, writes what was asked for and judges.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	switch {
	case c.File == "" && c.From != "":
		return cli.Usage("such as tare flow new.yaml --from "+c.From, errors.New("which file is to be written?"))
	case c.File == "":
		return cli.Usage("such as tare flow shop.yaml; --from writes a first one", errors.New("which file? name a flow file (YAML)"))
	case c.From != "":
		return c.write(t)
	}
	f, err := c.file()
	if err != nil {
		return err
	}
	if err := cli.CheckOutputs([]cli.Output{{Flag: "--output", Path: c.Output}, {Flag: "--html", Path: c.HTML}, {Flag: "--markdown", Path: c.Markdown}}, c.File); err != nil {
		return err
	}
	if c.On != "" || c.Pod.Given() {
		return c.runInPod(ctx, t, f)
	}
	if c.Profile == script.Breakpoint {
		return c.breakpoint(ctx, t, f)
	}
	rep, err := c.offer(ctx, t, f)
	if err != nil {
		return err
	}
	return c.finish(t, rep.page(), rep, rep.verdict())
}

// runInPod has the whole command run in a namespace of a Kubernetes cluster.
func (c *Command) runInPod(ctx context.Context, t *cli.Terminal, f *script.File) error {
	namespace, yes := pods.Namespace([]string{c.On})
	switch {
	case c.On == "":
		return cli.Usage("run the command in a pod with --on k8s", errors.New("--image, --pod-cpu, --pod-memory and --deadline do nothing without --on k8s"))
	case !yes:
		return cli.Usage("start tare on that host, or load by requests: `tare load --on`", fmt.Errorf("--on %s: users come from one process, here or in a pod (--on k8s:NAMESPACE)", c.On))
	}
	if err := t.RefuseFlags(true, "with --on k8s", "pid"); err != nil {
		return err
	}
	p := pods.Command{Reads: []string{c.File}, Writes: []string{c.Output, c.HTML, c.Markdown}}
	if f.Feed != "" {
		p.Reads = append(p.Reads, filepath.Join(filepath.Dir(c.File), f.Feed))
	}
	return c.Pod.RunAlone(ctx, t, namespace, p)
}

// file reads the file and changes it as the flags say.
func (c *Command) file() (*script.File, error) {
	f, err := script.ParseFile(c.File, c.Base)
	if err != nil {
		return nil, cli.Usage("`tare help flow` says what a file may hold", err)
	}
	switch {
	case c.Rate != "" && c.Users > 0:
		return nil, cli.Usage("users arrive by --rate, or are counted by --users", errors.New("--rate and --users exclude each other"))
	case c.Users < 0 || c.Duration < 0:
		return nil, cli.Usage("leave it out", errors.New("--users and --duration are not negative"))
	case c.Users > 0:
		f.Users = script.Users{Count: c.Users}
	case c.Rate != "":
		s, err := pace.Parse(c.Rate, 1)
		if err != nil {
			return nil, cli.Usage("see `tare flow --help`", fmt.Errorf("--rate: %w", err))
		}
		f.Users = script.Users{Arrive: s, Most: f.Users.Most}
	}
	if c.Profile != "" {
		if f, err = f.As(c.Profile, c.Duration); err != nil {
			return nil, cli.Usage("give sessions a second by --rate, or arrive in the file", err)
		}
	} else if c.Duration > 0 {
		f.Duration = c.Duration
	}
	return f, c.parseLimits(f)
}

// parseLimits reads the thresholds of the command line.
func (c *Command) parseLimits(f *script.File) error {
	const hint = "write it as 'p99>2s', which is of sessions, or 'STEP: p99>50ms'"
	for _, text := range c.FailIf {
		step, comparison, named := strings.Cut(text, ": ")
		if !named {
			step, comparison = "", text
		}
		th, err := cli.FailIf(comparison)
		if err != nil {
			return cli.Usage(hint, err)
		}
		known := step == ""
		for _, s := range f.Sent() {
			known = known || s.Flow != "" && (s.Name == step || s.Flow+"/"+s.Name == step)
		}
		switch {
		case !known:
			return cli.Usage(hint, fmt.Errorf("--fail-if: no step is called %q", step))
		case step == "" && strings.HasPrefix(th.String(), "status"):
			return cli.Usage(hint, fmt.Errorf("--fail-if %s: a session has no status", th))
		}
		c.limits = append(c.limits, limit{step, th})
	}
	return nil
}

// offer runs a file and judges what came of it.
func (c *Command) offer(ctx context.Context, t *cli.Terminal, f *script.File) (*report, error) {
	title := c.title(f)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &watcher{show: cli.NewProgress(t), live: t.Live, quiet: c.Quiet, reach: cli.Reach{Stop: stop}, second: math.NaN()}
	o := flow.Options{Connections: c.Connections, Seed: c.Seed, Progress: w.progress}
	if c.Insecure {
		o.TLS = &tls.Config{InsecureSkipVerify: true}
	}
	if c.PID != 0 {
		if _, err := task.ReadStat(c.PID); err != nil {
			return nil, cli.Usage("--pid takes the process ID of the service", fmt.Errorf("--pid: %w", err))
		}
		o.Memory = func() uint64 {
			s, err := task.ReadStat(c.PID)
			if err != nil {
				return 0 // not known
			}
			return s.RSS
		}
	}
	res, err := flow.Run(ctx, f, o)
	w.show.Done()
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "the load was not begun; set-up has to succeed"}
	case errors.Is(context.Cause(ctx), cli.ErrUnreachable):
		res.Ended = cli.ErrUnreachable.Error()
	}
	rep := &report{Title: title, Profile: c.Profile, Result: res, open: f.Users.Arrive != nil, unreachable: errors.Is(context.Cause(ctx), cli.ErrUnreachable)}
	rep.judge(f.FailIf, c.limits)
	if c.Profile == script.Soak || c.PID != 0 {
		rep.Drift = flow.Drifts(res)
	}
	return rep, nil
}

// title says what is offered.
func (c *Command) title(f *script.File) string {
	name := filepath.Base(c.File)
	if c.Profile != "" {
		name += ", " + c.Profile
	}
	if f.Users.Arrive == nil {
		return fmt.Sprintf("%s: %d users for %v", name, f.Users.Count, f.Planned())
	}
	return fmt.Sprintf("%s: %s for %v", name, arrivals(f.Users.Arrive), f.Planned())
}

// arrivals says in words how many come.
func arrivals(s *pace.Schedule) string {
	first, last := s.Phases[0].From, s.Phases[len(s.Phases)-1].To
	low, high := first, first
	for _, p := range s.Phases {
		low, high = min(low, p.From, p.To), max(high, p.From, p.To)
	}
	text := fmt.Sprintf("%s sessions a second", number(low))
	if low != high {
		text = fmt.Sprintf("%s to %s sessions a second", number(low), number(high))
		if first > last {
			text += ", falling"
		}
	}
	return text
}

// finish writes and shows a result, and returns what judges it.
func (c *Command) finish(t *cli.Terminal, p doc.Page, v any, verdict error) error {
	lost := errors.Join(
		cli.WriteFile(c.Output, func(w io.Writer) error { return cli.WriteJSON(w, v) }),
		cli.WriteFile(c.HTML, func(w io.Writer) error { return doc.HTML(w, p, doc.HTMLOptions{}) }),
		cli.WriteFile(c.Markdown, func(w io.Writer) error { return doc.Markdown(w, p) }),
	)
	if c.JSON {
		lost = errors.Join(lost, t.JSON(v))
	} else {
		lost = errors.Join(lost, doc.Text(t.Out, p, t.PageLayout()))
	}
	if lost != nil {
		return lost
	}
	return verdict
}
