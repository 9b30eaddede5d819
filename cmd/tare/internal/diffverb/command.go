// Package diffverb compares two sets of profiles: the verb diff.
package diffverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// Command shows what costs more in one set of profiles than in another.
type Command struct {
	A string `arg:"" help:"Profile files separated by commas, their folder, a URL, a process ID, cgroup:PATH, container:ID, or RUN:ARM."`
	B string `arg:"" help:"What to compare with A, in the same forms."`
	cli.For
	Repeat      int      `default:"5" help:"Captures of each service; two services take turns."`
	Load        []string `group:"Load:" sep:"none" help:"URL to load meanwhile, to show costs per request; once for A and once for B." placeholder:"URL"`
	cli.Sending `group:"Load:"`
	cli.Hz
	Q        float64 `default:"0.05" help:"Allowed share of false findings among those reported, on average."`
	Keep     string  `group:"Output:" help:"Also write the captures of services into this folder, as a-1.cpu.pb.gz and so on." placeholder:"DIR"`
	JSON     bool    `group:"Output:" name:"json" help:"Print JSON."`
	HTML     string  `group:"Output:" name:"html" help:"Write the table and a differential flame graph as one HTML file." placeholder:"FILE"`
	Markdown string  `group:"Output:" help:"Write a comment for a pull request, the tables folded in it." placeholder:"FILE"`
}

// Help says what is compared and how.
func (c *Command) Help() string {
	return `Examples:

  tare diff before/ after/                 folders of saved profiles
  tare diff a1.pb.gz,a2.pb.gz,a3.pb.gz b1.pb.gz,b2.pb.gz,b3.pb.gz
  tare diff --load http://localhost:8080/ --load http://localhost:8081/ localhost:6060 localhost:6061
  tare diff 4711 4712
  tare diff runs/chain:nested runs/chain:chain

tare compares owners by their own cost. It compares functions within an owner by what
they and their callees cost there, wherever they are on the stack. The captures of one
side show the noise, so repeat them, if possible each in a new process. The table
excludes owners without a measurable difference; the graph shows them in grey.`
}

// Run captures or reads, compares, and shows what differs.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if err := c.check(t); err != nil {
		return err
	}
	a, b := &side{source: c.A}, &side{source: c.B}
	if err := c.gather(ctx, t, a, b); err != nil {
		return err
	}
	d, err := c.compare(a, b)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("interrupted after %s of A and %d of B", unit.Plural(max(len(a.cpu), len(a.allocs)), "capture"), max(len(b.cpu), len(b.allocs))))
	}
	p := diffPage(d)
	err = errors.Join( // the table is shown all the same
		cli.WriteFile(c.HTML, func(w io.Writer) error { return page.WriteDiff(w, d) }),
		cli.WriteFile(c.Markdown, func(w io.Writer) error { return doc.Markdown(w, comment(d)) }),
	)
	return t.Show(ctx, cli.Result{JSON: d, Page: p}, c.JSON, err)
}

func (c *Command) check(t *cli.Terminal) error {
	switch {
	case c.Repeat < 1 || c.Repeat > 1000:
		return cli.Usage("", fmt.Errorf("--repeat %d: at least 1, at most 1000", c.Repeat))
	case !(c.Q > 0 && c.Q < 1):
		return cli.Usage("such as 0.05", fmt.Errorf("--q %g: more than 0 and less than 1", c.Q))
	case len(c.Load) != 0 && len(c.Load) != 2:
		return cli.Usage("--load URL-OF-A --load URL-OF-B", fmt.Errorf("--load is given %s; give it twice, once for A and once for B", unit.Plural(len(c.Load), "time")))
	}
	if c.Keep != "" {
		if info, err := os.Stat(c.Keep); err != nil || !info.IsDir() {
			return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("--keep %s: there is no such folder", c.Keep), Hint: "create the folder first"}
		}
	}
	return cmp.Or(c.For.Check(time.Hour), c.Sending.Check(t, len(c.Load) > 0), cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: c.HTML}, {Flag: "--markdown", Path: c.Markdown}}))
}

// gather takes the captures of both sides. Services take turns, and who comes
// first changes, so that what the machine does meanwhile hits both. If it is
// interrupted, it keeps those that are whole, as long as there is one of each side.
func (c *Command) gather(ctx context.Context, t *cli.Terminal, a, b *side) error {
	var services []int
	outside := false
	for i, s := range []*side{a, b} {
		if err := s.read(t); err != nil {
			return err
		}
		if s.live {
			services = append(services, i)
			outside = outside || s.service.Outside()
		}
	}
	if err := cmp.Or(t.RefuseFlags(len(services) == 0, "for saved profiles", "load", "for", "repeat", "keep"), c.Hz.Check(outside), checkSources(a, b)); err != nil {
		return err
	}
	for n := range c.Repeat {
		for k := range services {
			i := services[(n+k)%len(services)]
			err := c.capture(ctx, t, []*side{a, b}[i], turn{i, n})
			if ctx.Err() != nil && len(a.cpu) > 0 && len(b.cpu) > 0 {
				return nil
			}
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("nothing was compared yet: a comparison needs one whole capture of each side: %w", err)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// turn is which side is captured, and for which time, from 0.
type turn struct{ side, nth int }

// capture profiles a service once more.
func (c *Command) capture(ctx context.Context, t *cli.Terminal, s *side, at turn) error {
	o := capture.Options{For: c.For.For, Hz: c.Hz.Hz, Count: true}
	name := fmt.Sprintf("%c, capture %d of %d", 'A'+at.side, at.nth+1, c.Repeat)
	if at.nth == 0 {
		o.Progress = func(line string) { t.Note("%s: %s", name, line) }
	} else {
		t.Note("%s", name) // the rest is as it was for the first
	}
	if len(c.Load) > 0 {
		o.Load = c.Sending.Options(c.Load[at.side])
	}
	by := capture.Own
	if s.service.Outside() {
		by = capture.Outside // else its source might change
	}
	seen, err := cli.Capture(ctx, s.service, by, o)
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	s.warn(seen.Warnings)
	for _, p := range []*pprof.Profile{seen.CPU, seen.Allocs} {
		if p == nil {
			continue
		}
		p.SetRequests(seen.Window.Requests, seen.Window.Margin)
		s.add(p.Kind, p.Sampled(), seen.Window)
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
