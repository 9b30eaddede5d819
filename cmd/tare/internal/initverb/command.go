// Package initverb is the verb init: it writes a study file for a module's service.
//
// It finds the program ([findServer]), a commit to compare it with and the routes of its
// source ([findRoutes]). It starts the service once, keeps the routes that succeed, and
// writes what it found.
package initverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/compose"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/variant"
)

// Command writes a study file.
type Command struct {
	Service string `arg:"" optional:"" help:"Folder of a main package, with settings before it and arguments after it (default: the only server below this folder)."`
	Output  string `short:"o" default:"tare.yaml" help:"File to write (default: tare.yaml)." placeholder:"FILE"`
	Force   bool   `help:"Replace the file if it exists."`

	Ask   compose.AskFlags     `embed:"" group:"Requests:"`
	Start compose.ServiceFlags `embed:"" group:"Starting the service:"`
}

// Help says what is found out.
func (c *Command) Help() string {
	return `Examples:

  tare init
  tare init ./cmd/api --path /orders/7
  tare init 'LOG=off ./cmd/api -config dev.yaml' -o api.yaml

init writes a study that compares this folder with the default branch, or with the newest
tag if the branch builds the same program. Outside Git it compares with a build that uses
a profile (PGO). tare run tare.yaml measures it; tare gate tare.yaml passes or fails it.

The service needs no changes. init starts it, finds its port, and requests the GET routes
that it finds in the source. Those that succeed become the targets.`
}

// Run writes the file.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	service, err := c.service(ctx)
	if err != nil {
		return err
	}
	p := compose.NewPlan(studyName(service.Name), c.Start)
	p.Connections, p.Rate, p.Threshold = 64, "50%", "1%"
	p.Metric = p.DefaultMetric(runtime.GOOS)
	if runtime.GOOS != "linux" && p.Listen == "any" {
		p.Listen = "" // only Linux is asked for ports
	}
	routes, err := findRoutes(ctx, service.Pkg)
	if err != nil {
		return err
	}
	a := &asker{plan: p, service: service, bases: variant.Bases(ctx, service.Pkg), terminal: t}
	if len(c.Ask.Path) == 0 && c.Ask.Targets == "" && c.Ask.From == "" {
		c.Ask.Path, a.guessed = routes.candidates(), true
	}
	if err := p.Request(&c.Ask); err != nil {
		return err
	}
	answers, err := a.ask(ctx)
	if err != nil {
		return runs.Explain(compose.Explain(err))
	}
	if a.guessed {
		if answers, err = keepSuccessful(p, answers); err != nil {
			return err
		}
	}
	differences, err := p.Settle(answers, c.Ask.Status)
	if err != nil {
		return err
	}
	for _, d := range differences {
		t.Note("warning: %s", d)
	}
	for i := range p.Targets {
		p.Targets[i].Verify.SHA256 = "" // the file outlives the contents
	}
	p.Others = routes.without(p.Targets)
	p.Arms = a.final()
	return c.write(t, p, answers[0])
}

// check finds what would fail after the build.
func (c *Command) check() error {
	if _, err := os.Stat(c.Output); err == nil && !c.Force {
		return cli.Usage("--force replaces it; -o FILE names another", fmt.Errorf("%s exists", c.Output))
	}
	return cli.CheckOutputs([]cli.Output{{Flag: "--output", Path: c.Output}})
}

// service is the one that the command line names, or the only server below this folder.
func (c *Command) service(ctx context.Context) (compose.Service, error) {
	text := c.Service
	if text == "" {
		found, err := findServer(ctx)
		if err != nil {
			return compose.Service{}, err
		}
		text = found
	}
	service, err := compose.ParseService(text)
	if err != nil {
		return service, cli.Usage("tare init ./cmd/api", err)
	}
	if service.Pkg == "" || service.Ref != "" {
		return service, cli.Usage("tare ab compares other services, and --save writes the study", fmt.Errorf("%q is not the folder of a main package", text))
	}
	return service, nil
}

// asker finds out what the service and the commit before answer.
type asker struct {
	plan     *compose.Plan
	service  compose.Service
	bases    []string
	guessed  bool // the targets are those of the source
	terminal *cli.Terminal
}

// ask asks the service and the first base that is another program. If there is none, the
// service is compared with itself.
func (a *asker) ask(ctx context.Context) ([]lab.Answer, error) {
	p := a.plan
	for _, base := range a.bases {
		p.Arms = a.against(base)
		answers, err := a.askArms(ctx)
		if equal := (*lab.EqualError)(nil); !errors.As(err, &equal) {
			return answers, err
		}
	}
	p.AA = true
	if len(a.bases) > 0 {
		p.Arms = a.against(a.bases[0])
	} else {
		p.Arms = []compose.Service{a.service, a.service}
		compose.NameApart(p.Arms)
	}
	return a.askArms(ctx)
}

// askArms asks the arms for the targets. If a guessed one breaks them, / is asked for alone.
func (a *asker) askArms(ctx context.Context) ([]lab.Answer, error) {
	answers, err := a.plan.AskServices(ctx, a.terminal, runs.NewBuilder(""))
	if errors.Is(err, lab.ErrArm) && ctx.Err() == nil && a.guessed && len(a.plan.Targets) > 1 {
		a.plan.Targets = a.plan.Targets[:1]
		return a.plan.AskServices(ctx, a.terminal, runs.NewBuilder(""))
	}
	return answers, err
}

// against are the arms that compare the service with itself at a commit.
func (a *asker) against(base string) []compose.Service {
	before := a.service
	before.Ref = base
	before.Name = compose.CleanName(before.Name + "@" + base)
	return []compose.Service{before, a.service}
}

// final are the arms to write. Without a commit to compare with, the second one is a build
// with a profile.
func (a *asker) final() []compose.Service {
	if len(a.bases) > 0 {
		return a.plan.Arms
	}
	a.plan.AA = false
	after := a.service
	after.With = []string{"pgo"}
	after.Name = compose.CleanName(after.Name + "+pgo")
	return []compose.Service{a.service, after}
}

// keepSuccessful keeps the targets that every arm answers with success, without those for
// monitoring if there are others. It returns the answers to them.
func keepSuccessful(p *compose.Plan, answers []lab.Answer) ([]lab.Answer, error) {
	n := len(p.Targets)
	keep := make([]bool, n)
	for i := range keep {
		keep[i] = true
		for at := i; at < len(answers); at += n {
			keep[i] = keep[i] && answers[at].Status/100 == 2 && answers[at].Status == answers[i].Status
		}
	}
	work := make([]bool, n)
	for i := range work {
		work[i] = keep[i] && !monitoring.MatchString(p.Targets[i].Path)
	}
	if slices.Contains(work, true) {
		keep = work
	}
	var targets []study.Target
	var kept []lab.Answer
	for at, a := range answers {
		if i := at % n; keep[i] {
			kept = append(kept, a)
			if at < n {
				targets = append(targets, p.Targets[i])
			}
		}
	}
	if len(targets) == 0 {
		var asked []string
		for i, one := range p.Targets {
			asked = append(asked, fmt.Sprintf("%s (status %d)", one.Path, answers[i].Status))
		}
		return nil, cli.Usage("--path PATH says what to ask for", fmt.Errorf("no path that was tried succeeds: %s", strings.Join(asked, ", ")))
	}
	p.Targets = targets
	return kept, nil
}

// write writes the file and says what it holds.
func (c *Command) write(t *cli.Terminal, p *compose.Plan, first lab.Answer) error {
	args := slices.Clone(os.Args)
	args[0] = filepath.Base(args[0])
	s, err := p.Study("")
	if err != nil {
		return err
	}
	err = cli.WriteFile(c.Output, func(w io.Writer) error {
		_, err := io.WriteString(w, p.YAML(report.ShellLine(args)))
		return err
	})
	if err != nil {
		return err
	}
	var paths []string
	for _, one := range p.Targets {
		paths = append(paths, strings.TrimSpace(one.Method+" "+one.Path))
	}
	fmt.Fprintf(t.Out, "%s compares %s with %s, by %s\n", c.Output, p.Arms[1].Name, p.Arms[0].Name, strings.Join(paths, ", "))
	fmt.Fprintf(t.Out, "%s answered on %s after %s\n", first.Arm, first.Addr, first.Startup.Round(100_000))
	fmt.Fprintf(t.Out, "\n  tare run %s    measures it, at most %s\n", c.Output, runs.LongestTime(s, 0).Round(1e9))
	fmt.Fprintf(t.Out, "  tare gate %s   passes or fails it\n", c.Output)
	return nil
}

var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

// studyName is a service's name as studies may have it.
func studyName(service string) string {
	return cmp.Or(strings.Trim(unnamed.ReplaceAllString(strings.ToLower(service), "-"), "-"), "service")
}
