// Package ab compares services of one's own in one line: the verb ab.
//
// It reads each service from the command line, asks each for its answers, writes a study
// file ([compose.Plan]), and runs that study. What it did can so be kept, and
// repeated by `tare run`.
package ab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/compose"
	"github.com/tarehq/tare/cmd/tare/internal/pods"
	"github.com/tarehq/tare/cmd/tare/internal/publish"
	"github.com/tarehq/tare/cmd/tare/internal/remote"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/variant"
	"github.com/tarehq/tare/stats"
)

// Cmd compares services.
type Cmd struct {
	Services []string `arg:"" name:"service" help:"A Go program's folder, ./cmd/api@REF for a commit, a command in quotes, or a URL. The first is the control."`
	With     []string `sep:"none" help:"Also compare the first service built with pgo, serve, a Go version (go1.25.4) or a module version (gin@v1.9.1). Commas combine several. Repeatable." placeholder:"VARIANT"`

	Ask     compose.AskFlags     `embed:"" group:"Requests:"`
	Service compose.ServiceFlags `embed:"" group:"Starting the services:"`
	Measure runFlags             `embed:"" group:"Measurement:"`
	Remote  remote.ArmFlags      `embed:"" group:"Load from other hosts:"`
	Output  outputFlags          `embed:"" group:"Output:"`

	args []string // of the command line, for the record
}

// runFlags say how the services are measured.
type runFlags struct {
	Budget      time.Duration `default:"2m" help:"Cap on the run time, builds excluded (0: none). The run stops once it is decided."`
	Metric      string        `help:"Metric that decides (default: cpu_per_request; for URLs, and elsewhere than on Linux, response_p50)."`
	Threshold   cli.Percent   `default:"1%" help:"Smallest difference that matters."`
	Connections int           `short:"c" default:"64" help:"Number of connections."`
	Rate        string        `short:"r" default:"50%" help:"Requests a second to each service, or a share of the slowest one's capacity (50%). 0 sends the next request at each response." placeholder:"RATE"`
	Why         bool          `default:"true" negatable:"" help:"Attribute the difference in CPU to owners afterwards: by eBPF where the kernel allows it (root on Linux), else by net/http/pprof if every service has it."`
	runs.TrialFlags
}

// Help shows examples.
func (c *Cmd) Help() string {
	return `Examples:

  tare ab ./api-old ./api-new --path /orders/7
  tare ab ./cmd/api@main ./cmd/api                this branch against main
  tare ab ./cmd/api 'GOGC=400 ./cmd/api'          one program, two environments
  tare ab ./cmd/api --with pgo --with go1.25.4    one program, built in other ways
  tare ab 'python3 app.py' 'node app.js'          any program
  tare ab http://127.0.0.1:8080 http://127.0.0.1:8081
  tare ab --on k8s:shop http://api-old:8080 http://api-new:8080   from pods

Services need no changes. tare starts each one afresh for every trial, finds the port
that it opens, and waits for its first response. It sets PORT and TARE_ADDR, and replaces
{addr}, {host}, {port} and {dir} in arguments.

Exit status: 0 decided, 4 inconclusive. With --max: 0 held, 3 failed, 4 inconclusive.`
}

// Run compares the services.
func (c *Cmd) Run(ctx context.Context, t *cli.Terminal) error {
	if _, yes := c.Remote.InPods(); yes {
		return c.runInPods(ctx, t)
	}
	p, err := c.plan()
	if err != nil {
		return err
	}
	if err := cmp.Or(c.Output.check(t, c.reads()), c.Remote.Check()); err != nil {
		return err
	}
	c.args = slices.Clone(os.Args)
	c.args[0] = filepath.Base(c.args[0])
	command := report.ShellLine(c.args)
	builder := runs.NewBuilder(c.Measure.Module)
	answers, err := askServices(ctx, t, p, builder)
	if equal := (*lab.EqualError)(nil); errors.As(err, &equal) {
		return c.Output.showSame(ctx, t, comment.Equal{Study: p.Name, Control: equal.Control, BuildID: equal.BuildID, Command: c.args})
	}
	if err != nil {
		return runs.Explain(compose.Explain(err))
	}
	for i := 0; i < len(answers); i += len(p.Targets) { // those of a service stand together
		if a := answers[i]; a.Startup > 0 {
			t.Note("%s answered on %s after %s", a.Arm, a.Addr, a.Startup.Round(100*time.Microsecond))
		}
	}
	warnings, err := p.Settle(answers, c.Ask.Status)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		t.Note("warning: %s", w)
	}
	unplanned := c.chooseCapture(p, answers)
	if c.Measure.Why && unplanned != "" {
		t.Note("who spends the CPU will not be known: %s", unplanned)
	}
	s, err := c.schedule(t, p, answers, command)
	if err != nil {
		return err
	}
	if err := c.Output.save(p.YAML(command)); err != nil {
		return err
	}
	return c.measure(ctx, t, s, builder, unplanned)
}

// askServices asks all services. Those among others that are one program are compared all the same.
func askServices(ctx context.Context, t *cli.Terminal, p *compose.Plan, builder *arm.Builder) ([]lab.Answer, error) {
	answers, err := p.AskServices(ctx, t, builder)
	if twins := (*lab.TwinsError)(nil); errors.As(err, &twins) {
		t.Note("warning: %s and %s are the same program", twins.A, twins.B)
		p.AA = true
		return p.AskServices(ctx, t, builder)
	}
	return answers, err
}

// chooseCapture chooses by what the difference is explained: the kernel, if it can sample every
// service, or else the profiles that all of them expose. It returns why nothing explains it; "" if
// something does.
func (c *Cmd) chooseCapture(p *compose.Plan, answers []lab.Answer) (unplanned string) {
	foreign := slices.IndexFunc(answers, func(a lab.Answer) bool { return a.PID != 0 && !a.Go })
	unsampled := slices.IndexFunc(answers, func(a lab.Answer) bool { return a.Unsampled != nil })
	switch {
	case !c.Measure.Why:
		return "--no-why asks for no profiles"
	case foreign >= 0:
		return fmt.Sprintf("that needs Go programs, and %s is none", answers[foreign].Arm)
	case unsampled < 0:
		p.Capture = study.EBPF
	case !slices.ContainsFunc(answers, func(a lab.Answer) bool { return !a.Profiled }):
		p.Capture = study.Pprof
	default:
		return fmt.Sprintf("not every service has net/http/pprof, and %s cannot be sampled from outside: %s", answers[unsampled].Arm, answers[unsampled].Unsampled)
	}
	return ""
}

// schedule plans the blocks, says how many they are and what they can detect, and returns
// the study.
func (c *Cmd) schedule(t *cli.Terminal, p *compose.Plan, answers []lab.Answer, command string) (*study.Study, error) {
	said, blocks := p.Fit(c.Measure.Budget, longestRestart(answers))
	s, err := p.Study(command)
	if err != nil {
		return nil, err
	}
	budgets, _ := c.Output.Max.List() // plan has checked them
	for _, b := range budgets {
		if err := s.CheckComparable(b.Metric); err != nil {
			return nil, cli.Usage("leave that budget out; `tare help study-files` lists what each metric needs", fmt.Errorf("--max %s: %w", b.Metric, err))
		}
	}
	t.Note("%s", said)
	if few := warnFew(p.Rate); few != "" {
		t.Note("warning: %s", few)
	}
	if blocks > 0 {
		runs.AnnounceEffect(t, s, blocks, c.Output.Dir)
	}
	return s, nil
}

// runInPods has the whole command run in a namespace of a Kubernetes cluster. What it starts
// is in the image there, so that the services are read in the pod.
func (c *Cmd) runInPods(ctx context.Context, t *cli.Terminal) error {
	if err := cmp.Or(t.RefuseFlags(true, "with --on k8s", "module", "arm-on", "comment"), c.Output.check(t, c.reads())); err != nil {
		return err
	}
	f := pods.Command{
		Reads:  c.reads(),
		Writes: append(cli.Paths(c.Output.Outputs()), c.Output.Dir, c.Output.Save),
	}
	for _, text := range c.Services {
		if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
			f.Targets = append(f.Targets, text)
		}
	}
	return c.Remote.RunInPods(ctx, t, f)
}

// reads are the files that flags name to be read; "" for a flag that is not given.
func (c *Cmd) reads() []string {
	return []string{c.Ask.Targets, c.Ask.From, c.Ask.BodyFile, c.Service.EnvFile}
}

// plan reads the command line.
func (c *Cmd) plan() (*compose.Plan, error) {
	p := compose.NewPlan(publish.AB, c.Service)
	p.FindProfiles, p.Patience = c.Measure.Why, c.Measure.Budget
	p.Connections, p.Threshold, p.Metric = c.Measure.Connections, fmt.Sprintf("%g%%", float64(c.Measure.Threshold)), c.Measure.Metric
	var err error
	if p.Rate, err = readRate(c.Measure.Rate); err != nil {
		return nil, err
	}
	if c.Measure.Connections < 1 || c.Measure.Budget < 0 || c.Measure.Threshold <= 0 || c.Measure.Threshold > 100 {
		return nil, cli.Usage("", errors.New("--connections wants 1 or more, --budget 0 or more, --threshold more than 0 and at most 100 per cent"))
	}
	if c.Service.Port < 0 || c.Service.Port > math.MaxUint16 {
		return nil, cli.Usage("", fmt.Errorf("--port wants a number from 1 to %d", math.MaxUint16))
	}
	if p.Arms, err = c.arms(); err != nil {
		return nil, err
	}
	p.AA, p.Fewest = p.HasTwins(), stats.BlocksForFamily(len(p.Arms)-1, stats.StudyAlpha)
	if err := p.Request(&c.Ask); err != nil {
		return nil, err
	}
	if err := c.checkMetrics(p); err != nil {
		return nil, err
	}
	p.Metric = cmp.Or(p.Metric, p.DefaultMetric(runtime.GOOS))
	if _, err := p.Study(""); err != nil {
		return nil, cli.Usage("see `tare ab --help`", err)
	}
	return p, nil
}

// checkMetrics refuses metrics that do not exist, and those that the rate tells nothing of.
func (c *Cmd) checkMetrics(p *compose.Plan) error {
	budgets, err := c.Output.Max.List()
	if err != nil {
		return err
	}
	w := study.Workload{Schedule: "constant"}
	if p.Rate == "" {
		w.Schedule = "closed"
	}
	flags := map[string]string{p.Metric: "--metric"}
	for _, b := range budgets {
		flags[b.Metric] = "--max"
	}
	delete(flags, "")
	for metric, flag := range flags {
		_, known := study.MetricNamed(metric)
		switch {
		case !known:
			return runs.UnknownMetric(flag, metric)
		case w.Unfit(metric) == "":
		case p.Rate == "":
			return cli.Usage("leave --rate 0 out", fmt.Errorf("%s %s: response times are compared at one rate for all, and --rate 0 has none", flag, metric))
		default:
			return cli.Usage("--rate 0 measures it", fmt.Errorf("%s %s: at one rate for all, the throughput is that rate", flag, metric))
		}
	}
	return nil
}

// arms reads the services and the variants of the first.
func (c *Cmd) arms() ([]compose.Service, error) {
	const remedy = "tare ab ./old ./new, tare ab ./cmd/api@main ./cmd/api, or one service and --with VARIANT"
	var all []compose.Service
	for _, text := range c.Services {
		a, err := compose.ParseService(text)
		if err != nil {
			return nil, cli.Usage(remedy, err)
		}
		all = append(all, a)
	}
	for _, words := range c.With {
		a := all[0]
		if a.Pkg == "" {
			return nil, cli.Usage(remedy, fmt.Errorf("--with %s builds the first service in another way, and %q is not a Go program's folder", words, a.Text))
		}
		a.With = strings.Split(words, ",")
		if _, err := variant.ParseAll(a.With); err != nil {
			return nil, cli.Usage("", fmt.Errorf("--with %s: %w", words, err))
		}
		a.Text += " --with " + words
		all = append(all, a)
	}
	if len(all) < 2 {
		return nil, cli.Usage(remedy, errors.New("one service has nothing to be compared with"))
	}
	compose.NameApart(all)
	return all, nil
}

// readRate is a rate as study files have it; "" for a closed loop.
func readRate(text string) (string, error) {
	number, share := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSuffix(number, "/s"), 64)
	switch {
	case err != nil || v < 0 || share && v > 100:
		return "", cli.Usage("--rate 2000, --rate 50% or --rate 0", fmt.Errorf("--rate %q is neither requests a second nor a percentage", text))
	case v == 0:
		return "", nil
	case share:
		return text, nil
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + "/s", nil
}

// leastRate is enough for the median of a trial to hold still, on most machines.
const leastRate = 100

// warnFew says that a rate is small, as is one that was meant as another tool's number of runs;
// "" of others.
func warnFew(rate string) string {
	number, perSecond := strings.CutSuffix(rate, "/s")
	if v, err := strconv.ParseFloat(number, 64); !perSecond || err != nil || v >= leastRate {
		return ""
	}
	return fmt.Sprintf("--rate (-r) %s is requests a second, not a number of runs, and few to measure by: leave it out, or ask for %d or more", number, leastRate)
}

// longestRestart is how long the slowest of the services takes to end and to start.
func longestRestart(answers []lab.Answer) (longest time.Duration) {
	for _, a := range answers {
		longest = max(longest, a.Startup+a.Ending)
	}
	return longest
}
