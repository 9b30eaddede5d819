// Package watchverb watches services all the time: the verb watch.
package watchverb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/watch"
	"github.com/tarehq/tare/cost/watch/ring"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/internal/cgroup"
	"github.com/tarehq/tare/stats/unit"
)

// Command watches services, or shows what was seen of them.
type Command struct {
	What           []string `arg:"" optional:"" name:"url|pid" help:"Services: process IDs, or URLs of services with net/http/pprof. With --since: the folder of --keep."`
	cli.Process    `group:"Service:"`
	AllGo          bool          `group:"Service:" help:"Watch every Go program on this machine."`
	K8s            bool          `name:"k8s" group:"Service:" help:"Watch every Go program in the pods of this node. A service goes by its namespace, workload and container."`
	Every          time.Duration `default:"10s" help:"Length of an interval: one table, at most one profile for each service. Up to 16 times as long, but 5m at most, to keep to --budget."`
	For            time.Duration `default:"0s" help:"How long to watch (0s: until interrupted)."`
	Hz             int           `name:"hz" default:"19" group:"From outside:" help:"From outside: samples a second per CPU."`
	Count          bool          `group:"From outside:" default:"true" negatable:"" help:"Count requests by a probe for a tenth of every twelfth interval, to show costs per request."`
	Answers        int           `group:"From outside:" default:"0" help:"Time the answers of this many processes, those that use most CPU (0: none; each costs every answer on the machine about 0.4 µs)."`
	Budget         cli.Percent   `default:"0.5%" help:"What watching may use, as a share of the CPU that the services use, or of a fifth of a core if they use less. Above it, tare samples less often, and intervals are longer."`
	MaxOwners      int           `group:"Output:" default:"50" help:"Owners of a service with their own series; the rest is one series, other."`
	Listen         string        `group:"Output:" help:"Serve metrics for Prometheus at http://ADDR/metrics, such as :9464. Without a host, only to this machine." placeholder:"ADDR"`
	telemetry.Flag `group:"Output:"`
	RemoteWrite    string        `group:"Output:" help:"Write the metrics to Prometheus (remote write 1.0), such as http://localhost:9090, at the end of each interval." placeholder:"URL"`
	Profiles       string        `group:"Output:" help:"Send each profile to Grafana Pyroscope, such as http://localhost:4040, to Parca, such as http://localhost:7070/api/profiles/writeraw, or to an OpenTelemetry receiver, such as http://localhost:4318/v1development/profiles." placeholder:"URL"`
	Keep           string        `group:"Output:" help:"Keep the profiles in this folder. The oldest are removed." placeholder:"DIR"`
	KeepBytes      size          `group:"Output:" default:"256MiB" help:"With --keep: size of the folder."`
	Since          time.Duration `group:"Output:" help:"Show which costs changed in this time, and when, by the profiles in a folder of --keep; watch nothing." placeholder:"TIME"`
	WriteRules     string        `group:"Output:" help:"Write rules for Prometheus and a dashboard for Grafana to this folder; watch nothing." placeholder:"DIR"`
	Quiet          bool          `short:"q" group:"Output:" help:"Print no tables."`
	JSON           bool          `group:"Output:" name:"json" help:"Print JSON: an object a line for each interval."`
}

// Help says what watching is for.
func (c *Command) Help() string {
	return `Examples:

  tare watch --pid 4711
  tare watch --all-go --listen :9464 --keep /var/lib/tare
  tare watch --k8s --listen 0.0.0.0:9464
  tare watch localhost:6060 localhost:6061
  tare watch --since 1h /var/lib/tare
  tare watch --write-rules monitoring

tare samples all processes by one program in the kernel, at a low rate, for as long as
it runs. It needs Linux and root. For a single process without that, and for a URL, it
asks for the service's own profile, a tenth of the time.

Every 10 s it prints who in each service spends what. --listen, --remote-write and --otlp
export the same as counters. --keep keeps profiles of each service, with owners as labels.
--since finds in them what became more expensive, when, and with which build.

A service is named by OTEL_SERVICE_NAME in its environment, or else by its program's
file. With --k8s, one in a pod is named by namespace, workload and container. New
processes and new builds are found while it runs.

tare measures what it uses itself and prints it. If that is more than --budget, it samples
less often, and its intervals are longer.`
}

// size is a number of bytes, such as 256MiB.
type size int64

// UnmarshalText reads a size.
func (s *size) UnmarshalText(text []byte) error {
	v, base, err := unit.Parse(string(text))
	if err != nil || base != unit.Bytes {
		return fmt.Errorf("%q is no size, such as 256MiB", text)
	}
	*s = size(v)
	return nil
}

const remedy = "tare watch --pid N, tare watch --all-go, tare watch --k8s, or tare watch URL"

// Run watches until it is told to end.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	switch {
	case c.WriteRules != "" && c.Since != 0:
		return cli.Usage("one of them", errors.New("--write-rules and --since exclude one another"))
	case c.WriteRules != "":
		return c.writeRules(t)
	case c.Since != 0:
		return c.showSince(ctx, t)
	}
	o, err := c.options()
	if err := cmp.Or(err, c.check(t, &o)); err != nil {
		return err
	}
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	out, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	w, err := watch.Start(ctx, o)
	if err != nil {
		return errors.Join(cli.ExplainCapture(err), out.close())
	}
	t.Note("watching at %d Hz, for at most %s of the CPU that the services use; sampling is expected to cost the services %s of the CPU they use", c.Hz, unit.Format(float64(c.Budget)/100, unit.Share), unit.Format(bpf.Price(c.Hz), unit.Share))
	err = c.loop(ctx, w, out)
	return errors.Join(err, w.Close(), out.close())
}

// loop watches until there is nothing left to watch, or the context is done.
func (c *Command) loop(ctx context.Context, w *watch.Watcher, out *output) error {
	for n := 0; ; n++ {
		if n == 1 {
			debug.FreeOSMemory() // what beginning took and nobody needs any more
		}
		i, err := w.Next(ctx)
		if i != nil {
			if err := out.show(i); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, bpf.ErrEnded):
			return &cli.Failure{Status: cli.ExitEnded, Err: err}
		case err != nil:
			return cli.ExplainCapture(err)
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil
		case ctx.Err() != nil:
			return &cli.Failure{Status: cli.ExitInterrupted}
		}
	}
}

// options are what is watched, and how.
func (c *Command) options() (watch.Options, error) {
	o := watch.Options{AllGo: c.AllGo, Pods: c.K8s, Every: c.Every, Hz: c.Hz, NoCount: !c.Count, Answers: c.Answers, Budget: float64(c.Budget) / 100}
	if c.PID != 0 {
		o.PIDs = append(o.PIDs, c.PID)
	}
	var groups, containers []string
	if c.Cgroup != "" {
		groups = append(groups, c.Cgroup)
	}
	if c.Container != "" {
		containers = append(containers, c.Container)
	}
	for _, arg := range c.What {
		s, err := cli.ParseService(arg)
		switch {
		case err != nil:
			return o, err
		case s.PID != 0:
			o.PIDs = append(o.PIDs, s.PID)
		case s.URL != "":
			o.URLs = append(o.URLs, s.URL)
		case s.Cgroup != "":
			groups = append(groups, s.Cgroup)
		default:
			containers = append(containers, s.Container)
		}
	}
	for _, name := range groups {
		dir, err := cgroup.Find(name)
		if err != nil {
			return o, cli.Usage("/proc/N/cgroup names that of process N", err)
		}
		o.Groups = append(o.Groups, dir)
	}
	for _, id := range containers {
		dir, err := cgroup.Container(id)
		if err != nil {
			return o, &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "it takes the ID, not the name: docker ps, podman ps and crictl ps show it"}
		}
		o.Groups = append(o.Groups, dir)
	}
	if len(o.PIDs)+len(o.Groups)+len(o.URLs) == 0 && !o.AllGo && !o.Pods {
		return o, cli.Usage(remedy, errors.New("nothing to watch: neither a process nor a URL"))
	}
	return o, nil
}

// check refuses what cannot be meant.
func (c *Command) check(t *cli.Terminal, o *watch.Options) error {
	switch {
	case c.Every < time.Second || c.Every > time.Hour:
		return cli.Usage("such as --every 10s", fmt.Errorf("--every %s: at least 1s, at most 1h", c.Every))
	case c.For < 0:
		return cli.Usage("such as --for 10m", fmt.Errorf("--for %s: not less than nothing", c.For))
	case c.Hz < 1 || c.Hz > bpf.DefaultHz:
		return cli.Usage("tare cost samples faster", fmt.Errorf("--hz %d: at least 1, at most %d", c.Hz, bpf.DefaultHz))
	case c.Budget <= 0 || c.Budget > 100:
		return cli.Usage("such as --budget 0.5%", fmt.Errorf("--budget %v%%: more than 0 %%, at most 100 %%", float64(c.Budget)))
	case c.MaxOwners < 1 || c.MaxOwners > 1000:
		return cli.Usage("such as --max-owners 50", fmt.Errorf("--max-owners %d: at least 1, at most 1000", c.MaxOwners))
	case c.Answers < 0 || c.Answers > 16:
		return cli.Usage("such as --answers 2", fmt.Errorf("--answers %d: at least 0, at most 16", c.Answers))
	case o.Pods && len(o.PIDs)+len(o.Groups) > 0:
		return cli.Usage("leave one out", errors.New("--k8s excludes processes, control groups and containers"))
	case c.Quiet && c.JSON:
		return cli.Usage("leave one out", errors.New("--quiet and --json exclude one another"))
	case c.KeepBytes < ring.Least:
		return cli.Usage("such as --keep-bytes 256MiB", fmt.Errorf("--keep-bytes %s: at least 1 MiB", unit.Format(float64(c.KeepBytes), unit.Bytes)))
	}
	outside := len(o.PIDs)+len(o.Groups) > 0 || o.AllGo || o.Pods
	return cmp.Or(t.RefuseFlags(c.Keep == "", "without --keep", "keep-bytes"),
		t.RefuseFlags(!outside, "for services that profile themselves", "hz", "count", "answers"))
}

// address is where to answer scrapes: of this machine alone, unless a host is named.
func address(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		if _, number := strconv.Atoi(listen); number == nil {
			return net.JoinHostPort("127.0.0.1", listen)
		}
		return listen // listening says what is wrong
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
}

// print prints an interval, for people or for programs.
func (c *Command) print(t *cli.Terminal, i *watch.Interval) error {
	switch {
	case c.JSON:
		e := json.NewEncoder(t.Out)
		e.SetEscapeHTML(false)
		return e.Encode(newRecord(i))
	case c.Quiet:
		return nil
	}
	return doc.Text(t.Out, intervalPage(i), t.PageLayout())
}
