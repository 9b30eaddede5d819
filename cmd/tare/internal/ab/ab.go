// Package ab compares services of one's own in one line: the verb ab.
//
// It reads each service from the command line ([parseArm]), asks each for its answers,
// writes a study file ([plan]), and runs that study. What it did can so be kept, and
// repeated by `tare run`.
package ab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/variant"
)

// Cmd compares services.
type Cmd struct {
	Services []string `arg:"" name:"service" help:"A Go program's folder, ./cmd/api@REF for a commit, a command in quotes, or a URL. The first is the control."`
	With     []string `sep:"none" help:"Also compare the first service built with pgo, serve, a Go version (go1.25.4) or a module version (gin@v1.9.1). Commas combine several. Repeatable." placeholder:"VARIANT"`

	Ask     askFlags     `embed:"" group:"Requests:"`
	Service serviceFlags `embed:"" group:"Starting the services:"`
	Measure runFlags     `embed:"" group:"Measurement:"`
	Output  outputFlags  `embed:"" group:"Output:"`

	args []string // of the command line, for the record
}

// serviceFlags say how a service is started. They hold for all that tare starts.
type serviceFlags struct {
	Port    int    `help:"Port to measure, if a service opens several." placeholder:"N"`
	Ready   string `help:"Path that has a status below 400 once a service is ready (default: the first --path)." placeholder:"PATH"`
	Before  string `help:"Shell command to run before each start, such as a migration." placeholder:"COMMAND"`
	After   string `help:"Shell command to run after each stop." placeholder:"COMMAND"`
	Workdir string `default:"." help:"Working directory of the services; {dir} in an argument is a new, empty folder at each start."`
	EnvFile string `help:"File with NAME=value lines for the environment." placeholder:"FILE"`
}

// runFlags say how the services are measured.
type runFlags struct {
	Budget      time.Duration `default:"2m" help:"Cap on the run time, builds excluded. The run stops once it is decided."`
	Metric      string        `help:"Metric that decides (default: cpu_per_request; for URLs response_p50)."`
	Threshold   cli.Percent   `default:"1%" help:"Smallest difference that matters."`
	Connections int           `short:"c" default:"64" help:"Number of connections."`
	Rate        string        `short:"r" default:"50%" help:"Requests a second to each service, or a share of the slowest one's capacity (50%). 0 sends the next request at each response." placeholder:"RATE"`
	Why         bool          `default:"true" negatable:"" help:"Attribute the difference in CPU to owners afterwards, by eBPF. Needs Linux and root."`
	runs.TrialFlags
}

// Help shows examples.
func (c *Cmd) Help() string {
	return `Examples:

  tare ab ./api-old ./api-new --path /orders/7
  tare ab ./cmd/api@main ./cmd/api                this branch against main
  tare ab ./cmd/api 'GOGC=400 ./cmd/api'          one program, two settings
  tare ab ./cmd/api --with pgo --with go1.25.4    one program, built in other ways
  tare ab 'python3 app.py' 'node app.js'          any program
  tare ab http://127.0.0.1:8080 http://127.0.0.1:8081

Services need no changes. tare starts each one afresh for every trial, finds the port
that it opens, and waits for its first response. It sets PORT and TARE_ADDR, and replaces
{addr}, {host}, {port} and {dir} in arguments.

Exit status: 0 decided, 4 inconclusive. With --max: 0 held, 3 failed, 4 inconclusive.`
}

// Run compares the services.
func (c *Cmd) Run(ctx context.Context, t *cli.Terminal) error {
	p, err := c.plan()
	if err != nil {
		return err
	}
	if err := c.Output.check(t); err != nil {
		return err
	}
	c.args = slices.Clone(os.Args)
	c.args[0] = filepath.Base(c.args[0])
	command := report.ShellLine(c.args)
	builder := runs.NewBuilder(c.Measure.Module)
	s, err := p.study(command)
	if err != nil {
		return err
	}
	progress := cli.NewProgress(t)
	draw := func(e lab.Event) { progress.Draw(e.Text) }
	answers, err := lab.Answers(ctx, lab.Options{Study: s, Builder: builder, Progress: draw})
	progress.Done()
	if equal := (*lab.EqualError)(nil); errors.As(err, &equal) {
		t.Note("every service is the same program as %s (SHA-256 %.12s…): nothing is measured", equal.Control, equal.BuildID)
		budgets, _ := c.Output.Max.List() // check has seen them
		return c.Output.PublishSame(ctx, t, comment.Equal{Study: s.Name, Control: equal.Control, BuildID: equal.BuildID, Command: c.args}, budgets)
	}
	if err != nil {
		return runs.Explain(explain(err))
	}
	differences, err := p.settle(answers, c.Ask.Status)
	if err != nil {
		return err
	}
	for _, d := range differences {
		t.Note("warning: %s", d)
	}
	t.Note("%s", p.fit(c.Measure.Budget, slowestStart(answers)))
	if s, err = p.study(command); err != nil {
		return err
	}
	if err := c.Output.save(p.yaml(command)); err != nil {
		return err
	}
	return c.measure(ctx, t, s, builder)
}

// plan reads the command line.
func (c *Cmd) plan() (*plan, error) {
	p := &plan{
		connections: c.Measure.Connections, threshold: fmt.Sprintf("%g%%", float64(c.Measure.Threshold)), metric: c.Measure.Metric,
		warmUp: 300 * time.Millisecond, measure: time.Second, looks: []int{8, 12, 18, 30},
		set: setting{
			listen: "any", ready: c.Service.Ready, before: c.Service.Before, after: c.Service.After,
			dir: c.Service.Workdir, envFile: c.Service.EnvFile,
		},
	}
	if c.Service.Port != 0 {
		p.set.listen = strconv.Itoa(c.Service.Port)
	}
	var err error
	if p.rate, err = readRate(c.Measure.Rate); err != nil {
		return nil, err
	}
	if c.Measure.Connections < 1 || c.Measure.Budget < 0 || c.Measure.Threshold <= 0 || c.Measure.Threshold > 100 {
		return nil, cli.Usage("", errors.New("--connections wants 1 or more, --budget 0 or more, --threshold more than 0 and at most 100 per cent"))
	}
	if p.arms, err = c.arms(); err != nil {
		return nil, err
	}
	p.aa = p.hasTwins()
	if p.targets, err = c.Ask.targets(); err != nil {
		return nil, err
	}
	if p.metric == "" {
		p.metric = "cpu_per_request"
		if slices.ContainsFunc(p.arms, func(a service) bool { return a.url != "" }) {
			p.metric = "response_p50" // nothing else is known of what runs elsewhere
		}
	}
	if c.Measure.Why && runtime.GOOS == "linux" && os.Geteuid() == 0 {
		p.capture = string(study.EBPF)
	}
	return p, nil
}

// arms reads the services and the variants of the first.
func (c *Cmd) arms() ([]service, error) {
	const remedy = "tare ab ./old ./new, tare ab ./cmd/api@main ./cmd/api, or one service and --with VARIANT"
	var all []service
	for _, text := range c.Services {
		a, err := parseArm(text)
		if err != nil {
			return nil, cli.Usage(remedy, err)
		}
		all = append(all, a)
	}
	for _, words := range c.With {
		a := all[0]
		if a.pkg == "" {
			return nil, cli.Usage(remedy, fmt.Errorf("--with %s builds the first service in another way, and %q is not a Go program's folder", words, a.text))
		}
		a.with = strings.Split(words, ",")
		if _, err := variant.ParseAll(a.with); err != nil {
			return nil, cli.Usage("", fmt.Errorf("--with %s: %w", words, err))
		}
		a.text += " --with " + words
		a.name = cleanName(a.name + "+" + strings.Join(a.with, "+"))
		all = append(all, a)
	}
	if len(all) < 2 {
		return nil, cli.Usage(remedy, errors.New("one service has nothing to be compared with"))
	}
	nameApart(all)
	return all, nil
}

// hasTwins reports whether two arms are the same in all that was typed: an A/A study.
func (p *plan) hasTwins() bool {
	for i, a := range p.arms {
		if slices.ContainsFunc(p.arms[:i], func(b service) bool { return a.text == b.text }) {
			return true
		}
	}
	return false
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

// study is what the plan says, read as any study file is.
func (p *plan) study(command string) (*study.Study, error) {
	s, err := study.Parse("ab", []byte(p.yaml(command)))
	if err != nil {
		return nil, fmt.Errorf("planning the comparison: %w", err)
	}
	return s, nil
}

// The fewest blocks that can decide at 95 %, and the most that are worth while.
const (
	fewestBlocks = 6
	mostBlocks   = 30
)

// fit plans as many blocks as the time allows, if each start takes so long, and says
// how many those are.
func (p *plan) fit(budget, start time.Duration) string {
	trials := time.Duration(len(p.arms) + 1)
	block := trials * (start + p.warmUp + p.measure + lab.Overhead)
	captures := time.Duration(0)
	if p.capture != "" {
		captures = 6 * (trials - 1) * (start + p.warmUp + 2*time.Second)
	}
	pilot := trials * (start + time.Second)
	besides := pilot + captures
	n := int((budget - besides) / block)
	if n < fewestBlocks { // blocks come first
		besides = pilot
		n = min(fewestBlocks, int((budget-besides)/block))
	}
	last := min(mostBlocks, max(fewestBlocks, n))
	p.looks = slices.DeleteFunc([]int{8, 12, 18}, func(look int) bool { return look >= last })
	p.looks = append(p.looks, last)
	if n < fewestBlocks {
		need := besides + fewestBlocks*block
		return fmt.Sprintf("%s is too short to decide: %d blocks take about %s", budget, fewestBlocks, need.Round(time.Second))
	}
	return fmt.Sprintf("at most %d blocks of %d trials, about %s; measuring stops once it is decided", last, trials,
		(besides + time.Duration(last)*block).Round(time.Second))
}

// explain adds remedies to what goes wrong with services.
func explain(err error) error {
	hint := ""
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case strings.Contains(err.Error(), "address already in use"):
		hint = "something listens on that port already: is the service running? Stop it, or compare it by its URL"
	case errors.Is(err, lab.ErrArm):
		hint = "start the service by hand; --path, --ready and --port say what to ask, when it is ready and where it listens"
	default:
		return err
	}
	return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: hint}
}

func slowestStart(answers []lab.Answer) time.Duration {
	return slices.MaxFunc(answers, func(a, b lab.Answer) int { return cmp.Compare(a.Startup, b.Startup) }).Startup
}
