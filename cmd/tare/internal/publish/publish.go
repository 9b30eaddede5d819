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
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/forge"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/verdict"
)

// Flags say where the result goes besides the terminal.
type Flags struct {
	Markdown string `help:"Write the comment for a pull request." placeholder:"FILE"`
	Comment  bool   `help:"Post that comment on the pull request of this CI job, or update it (GitHub, GitLab)."`

	pull *forge.Pull // nil: there is none to comment on
}

// Result is what is published.
type Result struct {
	Run      *record.Run
	Analysis *verdict.Analysis
	Gates    []verdict.Gated // nil without budgets
	Args     []string        // of the command line; nil: the run's own command repeats it
}

// Outputs are the files to be written.
func (f *Flags) Outputs() []cli.Output { return []cli.Output{{Flag: "--markdown", Path: f.Markdown}} }

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
	if f.Markdown == "" && f.pull == nil {
		return nil
	}
	var text bytes.Buffer
	if err := WriteComment(&text, t, r); err != nil {
		return err
	}
	s := &r.Analysis.Manifest.Study
	return f.send(ctx, t, text.Bytes(), s.Name+" "+s.Control)
}

// PublishSame says that nothing was measured, since all arms are the same program.
func (f *Flags) PublishSame(ctx context.Context, t *cli.Terminal, same comment.Equal) error {
	if f.Markdown == "" && f.pull == nil {
		return nil
	}
	same.Command = repeating(same.Command)
	var text bytes.Buffer
	if err := doc.Markdown(&text, same.Page()); err != nil {
		return err
	}
	return f.send(ctx, t, text.Bytes(), same.Study+" "+same.Control)
}

// WriteComment writes the comment on a run.
func WriteComment(w io.Writer, t *cli.Terminal, r Result) error {
	changes, err := runs.FindChanges(r.Run)
	if err != nil { // the rest is known all the same
		t.Note("warning: the owners are not compared: %s", err)
	}
	a := *r.Analysis
	a.Manifest.Command, a.Manifest.Programs = repeating(a.Manifest.Command), maps.Clone(a.Manifest.Programs)
	for arm, p := range a.Manifest.Programs {
		p.Args = maskSecrets(p.Args)
		a.Manifest.Programs[arm] = p
	}
	return comment.Markdown(w, comment.Source{Analysis: &a, Gates: r.Gates, Changes: changes, Command: repeating(r.Args)})
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

// repeating is the command line for others to repeat: without --comment and the values of
// what looks like a secret.
func repeating(args []string) []string {
	args = maskSecrets(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--comment" }))
	if len(args) > 0 {
		args[0] = filepath.Base(args[0])
	}
	return args
}

func maskSecrets(args []string) []string {
	args = slices.Clone(args)
	for i := range args {
		for _, secret := range secrets {
			args[i] = secret.ReplaceAllString(args[i], "${1}…")
		}
	}
	return args
}

// secrets match header fields, variables and passwords in URLs that should not be public.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:authorization|cookie|[a-z-]*(?:token|secret|key)):\s*).*`),
	regexp.MustCompile(`(?i)(\b\w*(?:token|secret|password|passwd|key)\w*=)\S+`),
	regexp.MustCompile(`(://[^/@\s:]*:)[^/@\s]+`),
}
