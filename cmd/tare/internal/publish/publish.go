// Package publish gives a result to those who read the pull request.
//
// Verbs that judge a change embed [Flags], check them before they measure, and hand
// the result to [Flags.Publish].
package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/forge"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/cireport"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

// Flags say where the result goes besides the terminal.
type Flags struct {
	Markdown string `help:"Write the comment for a pull request." placeholder:"FILE"`
	Comment  bool   `help:"Post that comment on the pull request of this CI job, or update it (GitHub, GitLab)."`
	JUnit    string `name:"junit" help:"Write each budget as a test case, in JUnit's form." placeholder:"FILE"`
	SARIF    string `name:"sarif" help:"Write the functions that cost more, for code scanning (SARIF 2.1.0)." placeholder:"FILE"`
	Badge    string `help:"Write the result for a badge of shields.io (endpoint JSON)." placeholder:"FILE"`

	pull *forge.Pull // nil: there is none to comment on
}

// Result is what is published.
type Result struct {
	Run      *record.Run
	Analysis *verdict.Analysis
	Gates    []verdict.Gated // nil without budgets
	Args     []string        // of the command line; nil: the run's own command repeats it

	Unplanned string // why the run was to take no profiles; "" where that is not known, or it was to
}

// Outputs are the files to be written.
func (f *Flags) Outputs() []cli.Output {
	return append([]cli.Output{{Flag: "--markdown", Path: f.Markdown}}, f.ofGates()...)
}

// ofGates are the files that show budgets.
func (f *Flags) ofGates() []cli.Output {
	return []cli.Output{{Flag: "--junit", Path: f.JUnit}, {Flag: "--sarif", Path: f.SARIF}, {Flag: "--badge", Path: f.Badge}}
}

// RefuseUngated refuses, without budgets, the files that show them.
func (f *Flags) RefuseUngated() error {
	for _, o := range f.ofGates() {
		if o.Path != "" {
			return cli.Usage("add --max, such as --max 'cpu_per_request<=5%'", fmt.Errorf("%s shows what became of budgets, and there are none", o.Flag))
		}
	}
	return nil
}

// Check finds the pull request before anything is measured. A job without one, such as
// that of a push, comments on nothing. getenv is as os.Getenv.
func (f *Flags) Check(t *cli.Terminal, getenv func(string) string) error {
	if !f.Comment {
		return nil
	}
	pull, err := forge.Find(getenv)
	switch {
	case errors.Is(err, forge.ErrNoPull):
		t.Note("--comment: %s, so there is nothing to comment on", err)
		return nil
	case errors.Is(err, forge.ErrNoCI):
		return cli.Usage("--markdown FILE writes the comment to a file", fmt.Errorf("--comment: %w", err))
	case err != nil:
		return fmt.Errorf("--comment: %w", err)
	}
	f.pull = pull
	return nil
}

// Publish writes the files and comments.
func (f *Flags) Publish(ctx context.Context, t *cli.Terminal, r Result) error {
	if !f.wanted() {
		return nil
	}
	source := newSource(t, r)
	var text bytes.Buffer
	if err := comment.Markdown(&text, source); err != nil {
		return err
	}
	s := &r.Analysis.Manifest.Study
	return errors.Join(f.writeGates(source), f.send(ctx, t, text.Bytes(), s.Name+" "+s.Control))
}

// WithFailure adds to an outcome that something could not be published. That is the exit
// status then, unless a budget is exceeded: who accepts an undecided gate has asked for the
// file all the same.
func WithFailure(outcome, unpublished error) error {
	var f *cli.Failure
	if unpublished == nil || errors.As(outcome, &f) && f.Status == cli.ExitThreshold {
		return errors.Join(outcome, unpublished)
	}
	return errors.Join(&cli.Failure{Status: cli.ExitFailed, Err: unpublished}, outcome)
}

// wanted reports whether anything is to be published.
func (f *Flags) wanted() bool {
	return f.pull != nil || slices.ContainsFunc(f.Outputs(), func(o cli.Output) bool { return o.Path != "" })
}

// PublishSame says that nothing was measured, since all arms are the same program, and that
// every budget holds.
func (f *Flags) PublishSame(ctx context.Context, t *cli.Terminal, same comment.Equal, budgets []verdict.Budget) error {
	if !f.wanted() {
		return nil
	}
	same.Command = repeating(same.Command)
	var text bytes.Buffer
	if err := doc.Markdown(&text, same.Page()); err != nil {
		return err
	}
	source := comment.Source{Analysis: &verdict.Analysis{}}
	source.Analysis.Manifest.Study.Name = same.Study
	for _, b := range budgets {
		m, _ := study.MetricNamed(b.Metric)
		c := &verdict.Comparison{Metric: m, Withheld: "the programs are identical, so nothing was measured"}
		source.Gates = append(source.Gates, verdict.Gated{Comparison: c, Budget: b.Harm, Result: bound.Held})
	}
	return errors.Join(f.writeGates(source), f.send(ctx, t, text.Bytes(), same.Study+" "+same.Control))
}

// writeGates writes the files that show budgets.
func (f *Flags) writeGates(s comment.Source) error {
	return errors.Join(
		cli.WriteFile(f.JUnit, func(w io.Writer) error { return cireport.JUnit(w, s) }),
		cli.WriteFile(f.SARIF, func(w io.Writer) error { return cireport.SARIF(w, s, findPlaces(&s.Analysis.Manifest.Study)) }),
		cli.WriteFile(f.Badge, func(w io.Writer) error { return cireport.Badge(w, s) }))
}

// WriteComment writes the comment on a run.
func WriteComment(w io.Writer, t *cli.Terminal, r Result) error {
	return comment.Markdown(w, newSource(t, r))
}

// AB is the name of the study that tare ab runs, by which its runs are known again.
const AB = "ab"

// Ending is what stands at the end of the report on a run of tare ab: the owners whose cost
// changed, the sizes of the programs, and what became of the budgets. Other runs have none.
func Ending(t *cli.Terminal, r Result) []doc.Block {
	if r.Run.Manifest.Study.Name != AB {
		return nil
	}
	return comment.Ending(newSource(t, r))
}

// Printer returns what prints the result once its run is analysed, and judges it by the budgets.
func (r *Result) Printer(t *cli.Terminal, budgets []verdict.Budget, asJSON bool) func(*verdict.Analysis) ([]doc.Block, error) {
	return func(a *verdict.Analysis) ([]doc.Block, error) {
		r.Analysis, r.Gates = a, a.Gate(budgets)
		return Print(t, *r, asJSON)
	}
}

// Print prints a run, and returns its ending.
func Print(t *cli.Terminal, r Result, asJSON bool) ([]doc.Block, error) {
	ending := Ending(t, r)
	if asJSON {
		return ending, runs.PrintJSON(t, r.Analysis)
	}
	return ending, runs.PrintShort(t, r.Run, r.Analysis, ending...)
}

// newSource compares owners.
func newSource(t *cli.Terminal, r Result) comment.Source {
	changes, err := runs.FindChanges(r.Run)
	if err != nil { // the rest is known all the same
		t.Note("warning: the owners are not compared: %s", err)
	}
	a := *r.Analysis
	a.Manifest.Command = repeating(a.Manifest.Command)
	profiles := runs.CountProfiles(r.Run)
	profiles.Unplanned = r.Unplanned
	return comment.Source{Analysis: &a, Gates: r.Gates, Changes: changes, Profiles: profiles, Command: repeating(r.Args)}
}

// send writes the file and posts the comment. Another run of the same subject updates it.
func (f *Flags) send(ctx context.Context, t *cli.Terminal, text []byte, subject string) error {
	err := cli.WriteFile(f.Markdown, func(w io.Writer) error { _, err := w.Write(text); return err })
	if f.pull == nil {
		return err
	}
	address, unposted := f.pull.Comment(ctx, marker(subject), string(text))
	if unposted != nil {
		return errors.Join(err, unposted)
	}
	t.Note("comment: %s", address)
	return err
}

var (
	commit  = regexp.MustCompile(`@\S*`)
	unnamed = regexp.MustCompile(`[^A-Za-z0-9._]+`)
)

// marker identifies the comments on one subject, whatever the commit that a study names.
func marker(subject string) string {
	return "tare: " + strings.Trim(unnamed.ReplaceAllString(commit.ReplaceAllString(subject, ""), "-"), "-")
}

// repeating is the command line for others to repeat: without what it wrote and posted where
// it ran.
func repeating(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		flag, _, hasValue := strings.Cut(args[i], "=")
		switch {
		case flag == "--comment":
		case !slices.Contains(written, flag):
			kept = append(kept, args[i])
		case !hasValue:
			i++
		}
	}
	if len(kept) > 0 {
		kept[0] = filepath.Base(kept[0])
	}
	return kept
}

// written are flags that name files, and the folder of runs.
var written = []string{"--markdown", "--junit", "--sarif", "--badge", "--save", "--dir"}
