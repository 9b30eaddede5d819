// Package costverb shows what each owner of a running service costs: the verb cost.
package costverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/flame"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// Command shows who in a running service spends what.
type Command struct {
	What        string `arg:"" optional:"" name:"url|pid" help:"A service with net/http/pprof: its address, or the URL of its profiles. Or a process ID."`
	cli.Process `group:"Service:"`
	Profile     []string `group:"Service:" sep:"none" help:"Saved CPU or allocation profile to read instead; repeatable." placeholder:"FILE"`
	Study       string   `group:"Service:" help:"Show the arms of a run instead, from its profiles: its folder, or its name below runs." placeholder:"RUN"`
	Arm         string   `group:"Service:" help:"With --study: only this arm."`
	Workload    string   `group:"Service:" help:"With --study: only under this workload."`
	cli.For
	Until       cli.Percent `help:"Look again, for as long as it takes to know each owner of at least 5 % of the CPU to within this share of its cost. At most 10m." placeholder:"5%"`
	cli.Load    `group:"Load:"`
	Requests    float64 `group:"Load:" help:"Number of requests served meanwhile, if counted elsewhere." placeholder:"N"`
	cli.Hz      `group:"From outside:"`
	Count       bool        `group:"From outside:" default:"true" negatable:"" help:"Count requests by a probe for a tenth of the time, to show costs per request."`
	Marks       bool        `group:"From outside:" help:"Also time every call of the owners: counts, wall time and quantiles."`
	Owner       []string    `group:"From outside:" sep:"none" help:"With --marks: watch only this owner, named package.Function or file.go:line; repeatable." placeholder:"NAME"`
	MaxOverhead cli.Percent `group:"From outside:" default:"5%" help:"With --marks: highest overhead, as a share of the process's CPU."`
	Waits       bool        `help:"Also record an execution trace of at most 5 s, to show what requests wait for. That costs the service more CPU."`
	All         bool        `group:"Output:" help:"Show all owners, also small ones that are not middlewares."`
	JSON        bool        `group:"Output:" name:"json" help:"Print JSON."`
	HTML        string      `group:"Output:" name:"html" help:"Write the table, the causes and a flame graph as one HTML file." placeholder:"FILE"`
	Folded      string      `group:"Output:" help:"Write the CPU stacks below their owners, as input for flame graphs." placeholder:"FILE"`
	Labelled    string      `group:"Output:" name:"pprof" help:"Write the CPU profile with labels owner and cause, for go tool pprof -tagroot owner." placeholder:"FILE"`
}

// Help says what the table means.
func (c *Command) Help() string {
	return `Examples:

  tare cost localhost:6060                       a service that exposes pprof
  tare cost --load http://localhost:8080/users localhost:6060
  tare cost --pid 4711                           any Go service, from outside
  tare cost --container 3f2a --load http://localhost:8080/
  tare cost --profile cpu.pb.gz --profile allocs.pb.gz --requests 120000
  tare cost --study nesting-run --arm three      an arm of a run

tare charges each stack of the profile to one owner: the innermost middleware, router,
engine or handler on it. File and line identify the owner. Self is what the owner itself
spent, with ± half the 95 % interval. The interval covers the number of stacks and the
count of requests. Total includes the owners inside. Garbage collection in the
background is shared out by bytes allocated.

The profiler costs the service 6 to 19 % of its CPU while it runs. It does not see
functions of the kernel. From outside, as with --pid, the cost is about 1.5 % at 499 Hz
(0.5 to 4.7 % where measured), and kernel functions are visible. The service needs no
changes, and may be stripped or in a container. Memory is not measured from outside.

Measuring from outside takes Linux 5.15 and root, or the capabilities CAP_BPF,
CAP_PERFMON and CAP_SYS_PTRACE. Without them, --pid searches the ports of the process
for its own profiles.

Exit status: 6 if the process or service ended meanwhile.`
}

// Run profiles, or reads profiles, and shows who spent what.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Study != "" {
		return c.showStudy(ctx, t)
	}
	b, err := c.capture(ctx, t)
	if err != nil {
		return err
	}
	err = t.Show(ctx, cli.Result{JSON: b.total, Page: doc.Page{Blocks: b.blocks(c.All)}}, c.JSON, c.write(b))
	if err == nil && b.Ended() {
		return &cli.Failure{Status: cli.ExitEnded} // a warning says so
	}
	if err == nil && b.CallsErr != nil {
		return fmt.Errorf("calls were not watched: %w", cli.ExplainCapture(b.CallsErr))
	}
	return err
}

// capture looks at the service, or reads its profiles.
func (c *Command) capture(ctx context.Context, t *cli.Terminal) (*bill, error) {
	s, err := c.service()
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(c.check(t), c.checkOutside(t, s)); err != nil {
		return nil, err
	}
	if len(c.Profile) > 0 {
		seen, err := capture.Read(c.Requests, c.Profile...)
		if errors.Is(err, capture.ErrSecondProfile) {
			return nil, cli.Usage("merge profiles with go tool pprof -proto", err)
		}
		if err != nil {
			return nil, err
		}
		seen.Source = strings.Join(c.Profile, ", ")
		return newBill(seen), nil
	}
	b, err := c.look(ctx, s, c.options(t))
	if err != nil || c.Until == 0 {
		return b, err
	}
	return c.lookLonger(ctx, t, s, b)
}

func (c *Command) look(ctx context.Context, s capture.Service, o capture.Options) (*bill, error) {
	seen, err := cli.Capture(ctx, s, capture.Cheapest, o)
	if err != nil {
		return nil, err
	}
	b := newBill(seen)
	b.byURL = s.URL != ""
	return b, nil
}

// lookLonger looks again if the first look left an owner less exact than --until: for as
// long as that owner then takes. The length is settled before it begins, so that its
// intervals are those of any look. If it fails, the first stands.
func (c *Command) lookLonger(ctx context.Context, t *cli.Terminal, s capture.Service, first *bill) (*bill, error) {
	const longest, reserve = 10 * time.Minute, 1.1
	owner, share := first.leastExact()
	wanted := float64(c.Until) / 100
	if share <= wanted || ctx.Err() != nil || first.Ended() {
		return first, nil
	}
	o := c.options(t)
	o.For = min(longest, time.Duration(reserve*math.Pow(share/wanted, 2)*float64(c.For.For)).Round(time.Second)+time.Second)
	t.NoteLine(fmt.Sprintf("%s is known to ±%s: looking again, for %s", owner, unit.Format(share, unit.Share), o.For))
	b, err := c.look(ctx, s, o)
	if err != nil {
		first.total.Warnings = append(first.total.Warnings, fmt.Sprintf("the longer look of --until failed, so this is the first: %v", err))
		return first, nil
	}
	if owner, share := b.leastExact(); share > wanted {
		b.total.Warnings = append(b.total.Warnings, fmt.Sprintf("%s is known to ±%s, not to the ±%s of --until", owner, unit.Format(share, unit.Share), unit.Format(wanted, unit.Share)))
	}
	return b, nil
}

// leastExact returns which of the owners with 5 % of the CPU and more has the widest
// interval, and half of its width as a share of the owner's cost.
func (b *bill) leastExact() (owner string, share float64) {
	const notable = 0.05
	for i := range b.total.Items {
		item := &b.total.Items[i]
		if item.Self >= notable*b.total.CPU && item.Self > 0 && item.Margin/item.Self > share {
			owner, share = item.Owner, item.Margin/item.Self
		}
	}
	return owner, share
}

func (c *Command) options(t *cli.Terminal) capture.Options {
	o := capture.Options{For: c.For.For, Hz: c.Hz.Hz, Requests: c.Requests, Count: c.Count, Load: c.Load.Options(),
		Progress: t.NoteLine}
	if c.Waits {
		o.Waits = min(c.For.For, 5*time.Second)
	}
	if c.Marks {
		o.Calls = &capture.Calls{Owners: c.Owner, MaxOverhead: float64(c.MaxOverhead) / 100}
	}
	return o
}

const remedy = "tare cost URL, tare cost --pid N, or tare cost --profile FILE"

// service is what is looked at; none if there are saved profiles.
func (c *Command) service() (s capture.Service, err error) {
	if len(c.Profile) == 0 {
		return c.Process.Service(c.What, remedy)
	}
	if c.What != "" || c.Named() {
		return s, cli.Usage(remedy, errors.New("a URL, saved profiles, --pid, --cgroup and --container exclude one another"))
	}
	return s, nil
}

func (c *Command) check(t *cli.Terminal) error {
	saved := len(c.Profile) > 0
	switch {
	case c.Load.URL != "" && saved:
		return cli.Usage("say --requests N", errors.New("--load does nothing for saved profiles"))
	case c.Load.URL != "" && c.Requests > 0:
		return cli.Usage("leave --requests out: --load counts them", errors.New("--load and --requests exclude one another"))
	case c.Requests < 0:
		return cli.Usage("", errors.New("--requests must be at least 0"))
	case c.Until < 0 || c.Until > 100:
		return cli.Usage("such as --until 5%", fmt.Errorf("--until %v%%: more than 0 %%, at most 100 %%", float64(c.Until)))
	case c.Until > 0 && c.Requests > 0:
		return cli.Usage("leave --requests out", errors.New("--until looks for longer than the time in which --requests were counted"))
	case c.Arm != "" || c.Workload != "":
		return cli.Usage("tare cost --study RUN --arm NAME", errors.New("--arm and --workload are of a run: --study names it"))
	}
	return cmp.Or(
		c.For.Check(time.Hour), c.Load.Check(t),
		t.RefuseFlags(saved, "for saved profiles", "for", "until", "waits"),
		cli.CheckOutputs(c.outputs(), c.Profile...))
}

// checkOutside checks what concerns a look from outside.
func (c *Command) checkOutside(t *cli.Terminal, s capture.Service) error {
	switch {
	case c.Marks && s.PID == 0:
		return cli.Usage("tare cost --pid N --marks", errors.New("--marks watches one process by its number"))
	case c.Marks && (c.MaxOverhead <= 0 || c.MaxOverhead > 100):
		return cli.Usage("such as --max-overhead 5%", fmt.Errorf("--max-overhead %v%%: more than 0 %%, at most 100 %%", float64(c.MaxOverhead)))
	case len(c.Owner) > 0 && !c.Marks:
		return cli.Usage("tare cost --pid N --marks --owner NAME", errors.New("--owner does nothing without --marks"))
	case c.Waits && s.Outside():
		return cli.Usage("tare cost URL --waits, or tare trace --pid N", errors.New("--waits needs the service's execution trace"))
	}
	return cmp.Or(c.Hz.Check(s.Outside()),
		t.RefuseFlags(!s.Outside(), "without --pid, --cgroup or --container", "count"),
		t.RefuseFlags(!c.Marks, "without --marks", "max-overhead"))
}

// outputs are the files asked for.
func (c *Command) outputs() []cli.Output {
	return []cli.Output{{Flag: "--html", Path: c.HTML}, {Flag: "--folded", Path: c.Folded}, {Flag: "--pprof", Path: c.Labelled}}
}

// write writes the files asked for, each that can be, whole or not at all.
func (c *Command) write(b *bill) error {
	err := cli.WriteFile(c.HTML, func(w io.Writer) error { return page.Write(w, b.total, capture.Stacks(b.CPU)) })
	if c.Folded == "" && c.Labelled == "" {
		return err
	}
	if b.CPU == nil {
		return errors.Join(err, cli.Usage("", errors.New("--folded and --pprof need a CPU profile")))
	}
	b.CPU.SetRequests(b.Window.Requests, b.Window.Margin)
	return errors.Join(err,
		cli.WriteFile(c.Folded, func(w io.Writer) error { return flame.Fold(w, b.CPU.Stacks) }),
		cli.WriteFile(c.Labelled, b.CPU.Label))
}
