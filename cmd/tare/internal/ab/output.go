package ab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/compose"
	"github.com/tarehq/tare/cmd/tare/internal/publish"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

// outputFlags say where results go.
type outputFlags struct {
	Max runs.Budgets `help:"Largest harm, such as 'cpu_per_request<=5%'; turns the comparison into a gate. Repeatable." placeholder:"METRIC<=PCT"`
	runs.HomeFlag
	JSON bool   `name:"json" help:"Print JSON."`
	Save string `help:"Write the study file, to repeat or change it: tare run FILE." placeholder:"FILE"`
	publish.Flags
}

// check finds what would fail after the measurement, or replace one of the files that are read.
func (o *outputFlags) check(t *cli.Terminal, read []string) error {
	budgets, err := o.Max.List()
	if err != nil {
		return err
	}
	if len(budgets) == 0 {
		if err := o.RefuseUngated(); err != nil {
			return err
		}
	}
	files := append(o.Outputs(), cli.Output{Flag: "--save", Path: o.Save})
	return cmp.Or(cli.CheckOutputs(files, read...), o.refuseForeign(), o.Flags.Check(t, os.Getenv))
}

// refuseForeign refuses to save the study in place of a file that tare has not written.
func (o *outputFlags) refuseForeign() error {
	info, err := os.Stat(o.Save)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // also without --save
	}
	content, err := os.ReadFile(o.Save)
	if err == nil && !bytes.HasPrefix(content, []byte(compose.Mark)) {
		err = cli.Usage("name another file, or remove that one", fmt.Errorf("--save %s: tare did not write the file that is there", o.Save))
	}
	return err
}

// save writes the study file, if it is asked for.
func (o *outputFlags) save(text string) error {
	return cli.WriteFile(o.Save, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// showSame says that all services are the same program, which passes any budget.
func (o *outputFlags) showSame(ctx context.Context, t *cli.Terminal, same comment.Equal) error {
	headline := fmt.Sprintf("every service is the same program as %s (SHA-256 %.12s…): nothing is measured", same.Control, same.BuildID)
	t.NoteLine(headline)
	if o.JSON {
		err := t.JSON(struct {
			Schema   int    `json:"schema"`
			Study    string `json:"study"`
			Control  string `json:"control"`
			Headline string `json:"headline"`
			Decided  bool   `json:"decided"`
			Equal    string `json:"equal"` // SHA-256 of the program
		}{report.JSONSchema, same.Study, same.Control, headline, true, same.BuildID})
		if err != nil {
			return err
		}
	}
	budgets, _ := o.Max.List() // check has seen them
	return o.PublishSame(ctx, t, same, budgets)
}

// measure runs the study and shows what came of it. unplanned is why that takes no profiles.
func (c *Cmd) measure(ctx context.Context, t *cli.Terminal, s *study.Study, builder *arm.Builder, unplanned string) error {
	session := c.session(builder)
	if err := c.Remote.Join(ctx, session); err != nil {
		return err
	}
	defer session.Agents.Close()
	run, err := session.Measure(ctx, t, s, session.NewFolder(s))
	budgets, _ := c.Output.Max.List() // Run has checked them
	result := publish.Result{Run: run, Unplanned: unplanned}
	a, err := session.Conclude(t, run, compose.Explain(err), result.Printer(t, budgets, c.Output.JSON))
	if err != nil {
		return err
	}
	return publish.WithFailure(c.conclude(a, result.Gates), c.Output.Publish(ctx, t, result))
}

// session runs the study. With budgets it may stop once all are decided, and a gate continues it.
func (c *Cmd) session(builder *arm.Builder) *runs.Session {
	s := &runs.Session{
		StudyFlags: runs.StudyFlags{TrialFlags: c.Measure.TrialFlags, HomeFlag: c.Output.HomeFlag},
		Budget:     c.Measure.Budget, Builder: builder, Command: c.args,
	}
	if budgets, _ := c.Output.Max.List(); len(budgets) > 0 { // Run has checked them
		s.Decided = func(a *verdict.Analysis) bool { return !slices.ContainsFunc(a.Gate(budgets), verdict.Gated.Undecided) }
		s.Again = func(dir string) []string {
			return append([]string{"tare", "gate", "--resume", dir}, c.Output.Max.Flags()...)
		}
	}
	return s
}

// conclude turns the outcome into an exit status; gates are nil without budgets.
func (c *Cmd) conclude(a *verdict.Analysis, gates []verdict.Gated) error {
	worst := comment.Worst(gates)
	switch {
	case worst == bound.Failed:
		return &cli.Failure{Status: cli.ExitThreshold, Err: errors.New("a budget is exceeded")}
	case worst == bound.Inconclusive, len(gates) == 0 && !a.Decided():
		outcome := a.Manifest.Outcome
		if 2*a.Trials.Valid < a.Trials.Total {
			outcome = "refused" // also where the time was over before that was seen
		}
		return c.inconclusive(outcome, a.Progress())
	}
	return nil
}

// inconclusive is the failure of a comparison that ended without a decision, with what would
// help.
func (c *Cmd) inconclusive(outcome string, p verdict.Progress) error {
	hint := "the report says what could not be compared"
	switch {
	case outcome == "refused":
		hint = "most trials did not count, for the reasons below \"How far to trust this\": a quieter machine, or a lower --rate such as 25%, may help"
	case outcome == "cap" && p.Blocks >= compose.MostBlocks:
		hint = "all planned blocks ran, so a longer --budget does not help: try a larger --threshold, or a quieter machine"
	case outcome == "cap", outcome == "budget":
		const least = time.Minute // in which most services have enough blocks
		hint = fmt.Sprintf("the time was too short: try --budget %s", max(4*c.Measure.Budget, least))
		if p.Blocks+p.Needs > compose.MostBlocks {
			hint += fmt.Sprintf("; it allows at most %d blocks, so a larger --threshold or a quieter machine may be needed, too", compose.MostBlocks)
		}
	}
	return &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("inconclusive"), Hint: hint}
}
