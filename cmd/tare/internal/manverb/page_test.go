package manverb

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"

	"github.com/alecthomas/kong"
)

// paint is a verb with all that a page shows.
type paint struct {
	Walls  []string `arg:"" optional:"" help:"Walls to paint."`
	Colour string   `short:"c" default:"white" placeholder:"NAME" help:"Colour (white unless it's given)."`
	Dry    bool     `negatable:"" default:"true" group:"After:" help:"Wait until it is dry."`
}

func (paint) Help() string {
	return `Examples:

  tool paint 'north wall'     the ~user's C:\walls
  .first is no request

Paint is wet.
  - one coat
  - two coats`
}

// tool is a small program that has the verb man too.
type tool struct {
	Paint  paint    `cmd:"" help:"Paint walls."`
	Secret struct{} `cmd:"" hidden:"" help:"Not shown."`
	Man    Command  `cmd:"" help:"Print a manual page."`
}

func parse(t *testing.T, args ...string) (*tool, *kong.Context) {
	t.Helper()
	v := new(tool)
	parser, err := kong.New(v, kong.Name("tool"), kong.Description("tool does up rooms.\n\nIt needs paint."))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	return v, parsed
}

// root is the tool's model.
func root(t *testing.T) *kong.Node {
	_, parsed := parse(t, "man")
	return parsed.Model.Node
}

// painting is the model of its first verb.
func painting(t *testing.T) *kong.Node { return root(t).Children[0] }

// run is what the verb prints, what it notes, and how it ends.
func run(t *testing.T, args ...string) (string, string, error) {
	t.Helper()
	v, parsed := parse(t, append([]string{"man"}, args...)...)
	var out, errs bytes.Buffer
	err := v.Man.Run(&cli.Terminal{Out: &out, Err: &errs, Width: 80}, parsed)
	return out.String(), errs.String(), err
}

func TestPage(t *testing.T) {
	const want = `.TH "TOOL\-PAINT" "1" "2026-11-26" "tare" "Manual of tare"
.SH "NAME"
tool\-paint \- Paint walls
.SH "SYNOPSIS"
\fBtool paint\fR [<walls> ...] [flags]
.SH "DESCRIPTION"
Paint walls.
.PP
Examples:
.IP
.nf
tool paint \(aqnorth wall\(aq     the \(tiuser\(aqs C:\ewalls
\&.first is no request
.fi
.PP
Paint is wet.
.IP "*" "4"
one coat
.IP "*" "4"
two coats
.SH "ARGUMENTS"
.TP
\fB[<walls> ...]\fR
Walls to paint.
.SH "OPTIONS"
.TP
\fB\-h, \-\-help\fR
Show context\-sensitive help.
.TP
\fB\-c, \-\-colour=NAME\fR
Colour (white unless it\(aqs given).
.SS "After"
.TP
\fB\-\-[no\-]dry\fR
Wait until it is dry.
.SH "SEE ALSO"
\fBtool\fR(1)
.PP
The topics of the documentation: \fBtare help topics\fR
`
	if got := string(page(painting(t), "2026-11-26")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRootPage(t *testing.T) {
	got, _, err := run(t)
	for _, want := range []string{"tool \\- does up rooms\n", "\n.PP\nIt needs paint.\n", ".SH \"COMMANDS\"\n.TP\n\\fBtool\\-paint\\fR(1)\nPaint walls.\n"} {
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%v: no %q in\n%s", err, want, got)
		}
	}
	if strings.Contains(got, "Not shown") {
		t.Errorf("a hidden verb is shown:\n%s", got)
	}
}

func TestOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "man1")
	if out, said, err := run(t, "-o", dir); err != nil || out != "" || !strings.Contains(said, "wrote 3 manual pages") {
		t.Errorf("got %q and %q, %v, want only a note of 3 pages", out, said, err)
	}
	for _, name := range []string{"tool.1", "tool-paint.1", "tool-man.1"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.HasPrefix(text, []byte(".TH ")) {
			t.Errorf("%s: got %q, %v, want a page", name, text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run(t, "-o", filepath.Join(dir, "file")); err == nil {
		t.Error("a file as the folder: no error, want one")
	}
}

func TestWrongUse(t *testing.T) {
	for args, want := range map[string]string{
		"panit":         "did you mean paint? `tare --help` lists the verbs",
		"secret":        "`tare --help` lists the verbs",
		"paint -o .":    "name the folder alone",
		"--output=. xx": "name the folder alone",
	} {
		var f *cli.Failure
		if _, _, err := run(t, strings.Fields(args)...); !errors.As(err, &f) || f.Status != cli.ExitUsage || f.Hint != want {
			t.Errorf("tool man %s: got %v, want wrong usage with the hint %q", args, err, want)
		}
	}
}

// TestManReads has man itself format a page, where it is installed. Signs that a shell
// reads come out as they went in.
func TestManReads(t *testing.T) {
	man, err := exec.LookPath("man")
	if err != nil {
		t.Skip("SKIPPED: man is not installed")
	}
	file := filepath.Join(t.TempDir(), "tool-paint.1")
	if err := os.WriteFile(file, page(painting(t), ""), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), man, "-l", "--warnings", file)
	cmd.Env = append(os.Environ(), "MANPAGER=cat", "MANWIDTH=80", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil && bytes.Contains(out, []byte("minimized")) {
		t.Skipf("SKIPPED: man is not whole here: %s", out)
	}
	text := regexp.MustCompile(".\b|\x1b\\[[0-9;]*m").ReplaceAllString(string(out), "")
	for _, want := range []string{"tool paint 'north wall'     the ~user's C:\\walls\n", ".first is no request\n", "-c, --colour=NAME\n", "--[no-]dry\n"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: no %q in\n%s", err, want, text)
		}
	}
	if strings.Contains(text, "warning") {
		t.Errorf("man warns:\n%s", text)
	}
}

// TestMandocReads has mandoc check a page, where it is installed.
func TestMandocReads(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("SKIPPED: mandoc is not installed")
	}
	for _, n := range []*kong.Node{root(t), painting(t)} {
		cmd := exec.CommandContext(t.Context(), mandoc, "-Tlint", "-Wwarning")
		cmd.Stdin = bytes.NewReader(page(n, "2026-11-26"))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("mandoc on the page of %s: %v: %s", n.FullPath(), err, out)
		}
	}
}
