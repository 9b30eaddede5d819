package ab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// outputFlags say where results go.
type outputFlags struct {
	Max runs.Budgets `help:"Largest harm, such as 'cpu_per_request<=5%'; turns the comparison into a gate. Repeatable." placeholder:"METRIC<=PCT"`
	runs.HomeFlag
	JSON     bool   `name:"json" help:"Print JSON."`
	Markdown string `help:"Write a Markdown summary for a pull request." placeholder:"FILE"`
	Save     string `help:"Write the study file, to repeat or change it: tare run FILE." placeholder:"FILE"`
}

func (o *outputFlags) check() error {
	if _, err := o.Max.List(); err != nil {
		return err
	}
	return cli.CheckOutputs([]cli.Output{{Flag: "--markdown", Path: o.Markdown}, {Flag: "--save", Path: o.Save}})
}

// save writes the study file, if it is asked for.
func (o *outputFlags) save(text string) error {
	if o.Save == "" {
		return nil
	}
	return cli.WriteFile(o.Save, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// measure runs the study and shows what came of it.
func (c *Cmd) measure(ctx context.Context, t *cli.Terminal, s *study.Study, builder *arm.Builder) error {
	session := &runs.Session{
		StudyFlags: runs.StudyFlags{TrialFlags: c.Measure.TrialFlags, HomeFlag: c.Output.HomeFlag},
		Budget:     c.Measure.Budget, Builder: builder, Command: c.args, Decided: c.decided(),
	}
	run, err := session.Measure(ctx, t, s, session.NewFolder(s))
	a, err := session.Conclude(t, run, explain(err), func(a *verdict.Analysis) error { return c.show(t, a) })
	if err != nil {
		return err
	}
	return c.conclude(a)
}

// decided reports at a look whether the run may stop: with gates, once all are decided.
func (c *Cmd) decided() func(*verdict.Analysis) bool {
	budgets, _ := c.Output.Max.List() // Run has checked them
	if len(budgets) == 0 {
		return nil
	}
	return func(a *verdict.Analysis) bool { return !slices.ContainsFunc(a.Gate(budgets), verdict.Gated.Undecided) }
}

// show prints the report and writes the summary.
func (c *Cmd) show(t *cli.Terminal, a *verdict.Analysis) error {
	err := runs.Print(t, a, c.Output.JSON)
	if c.Output.Markdown != "" {
		page := c.summary(a)
		err = errors.Join(err, cli.WriteFile(c.Output.Markdown, func(w io.Writer) error { return doc.Markdown(w, *page) }))
	}
	return err
}

// conclude turns the outcome into an exit status.
func (c *Cmd) conclude(a *verdict.Analysis) error {
	budgets, _ := c.Output.Max.List() // Run has checked them
	if len(budgets) == 0 {
		if !a.Decided() {
			return &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("inconclusive"), Hint: "more time decides more: --budget 10m"}
		}
		return nil
	}
	worst := bound.Held
	for _, g := range a.Gate(budgets) {
		if g.Result == bound.Failed || g.Result == bound.Inconclusive && worst == bound.Held {
			worst = g.Result
		}
	}
	switch worst {
	case bound.Failed:
		return &cli.Failure{Status: cli.ExitThreshold, Err: errors.New("a budget is exceeded")}
	case bound.Inconclusive:
		return &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("inconclusive"), Hint: "more time decides more: --budget 10m"}
	}
	return nil
}

// shownMetrics are those of the summary, in order, besides the primary one.
var shownMetrics = []string{"cpu_per_request", "response_p50", "response_p99", "throughput", "alloc_bytes", "rss_peak", "startup"}

// summary is the comparison on a page for a pull request: the verdict, the metrics, the
// owners whose cost differs, and how to repeat it.
func (c *Cmd) summary(a *verdict.Analysis) *doc.Page {
	page := &doc.Page{Title: a.Manifest.Study.Title}
	page.Add(doc.Heading{Level: 3, Text: a.Headline})
	for i := range a.Workloads {
		page.Add(metricsTable(a, &a.Workloads[i]))
	}
	if owners := ownersTable(a); len(owners.Rows) > 0 {
		page.Add(doc.Paragraph{Text: doc.Plain("Owners whose CPU per request differs from the control's by more than chance explains:")}, owners)
	}
	repeat := doc.Fold{Summary: "How to repeat this"}
	repeat.Blocks = append(repeat.Blocks, doc.Code{Text: commandLine(c.args)},
		doc.Paragraph{Text: doc.Plain(fmt.Sprintf("%d trials counted, of %d. Intervals hold at 95 %% and rest on the random order of trials in blocks.", a.Trials.Valid, a.Trials.Total))})
	page.Add(repeat)
	return page
}

func metricsTable(a *verdict.Analysis, w *verdict.Workload) doc.Table {
	table := doc.Table{Caption: "Metrics", Unlabelled: true, Columns: []doc.Column{{Head: "metric", Key: true}, {Head: "service"}, {Head: "value", Right: true}, {Head: "change", Right: true}, {Head: "95 % interval"}, {Head: "verdict"}}}
	for _, name := range shownMetrics {
		for i := range w.Metrics {
			m := &w.Metrics[i]
			if m.Name != name || m.Withheld != "" {
				continue
			}
			for j := range m.Compared {
				x := &m.Compared[j]
				if x.Withheld != "" {
					continue
				}
				table.Rows = append(table.Rows, doc.Row{Cells: doc.Cells(
					m.Title, x.Arm, verdict.Show(x.Metric, x.ArmMedian), x.Figure(), x.Range(), x.Word(),
				)})
			}
		}
	}
	return table
}

// ownersTable lists what differs between the arms by more than chance explains.
func ownersTable(a *verdict.Analysis) doc.Table {
	table := doc.Table{Caption: "Owners that differ", Unlabelled: true, Columns: []doc.Column{{Head: "owner", Key: true}, {Head: "service"}, {Head: "CPU per request", Right: true}, {Head: "change", Right: true}, {Head: "95 % interval"}}}
	ns := func(v float64) string { return unit.Format(v, unit.Nanoseconds) }
	for _, account := range a.Accounts {
		for _, owner := range account.Owners {
			for i, part := range owner.In {
				if !part.Changed() {
					continue
				}
				change := part.Change
				table.Rows = append(table.Rows, doc.Row{Cells: doc.Cells(
					owner.Name, account.Arms[i].Arm, ns(part.Self.Value),
					unit.Signed(change.Value, unit.Nanoseconds), ns(change.Interval.Lo)+" to "+ns(change.Interval.Hi),
				)})
			}
		}
	}
	return table
}
