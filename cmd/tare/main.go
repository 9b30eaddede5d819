// Command tare weighs what each layer of a Go HTTP service costs.
//
// Exit status: 0 done, 1 failed, 2 wrong usage, 3 a threshold or gate failed
// (doctor: a finding; whatif: stopped; env --strict: something disturbs),
// 4 inconclusive, 5 the requested load was not offered, 6 what was watched ended,
// 130 interrupted.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tarehq/tare/cmd/tare/internal/ab"
	"github.com/tarehq/tare/cmd/tare/internal/adviseverb"
	"github.com/tarehq/tare/cmd/tare/internal/agentverb"
	"github.com/tarehq/tare/cmd/tare/internal/calibrate"
	"github.com/tarehq/tare/cmd/tare/internal/claims"
	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/costverb"
	"github.com/tarehq/tare/cmd/tare/internal/diffverb"
	"github.com/tarehq/tare/cmd/tare/internal/doctorverb"
	"github.com/tarehq/tare/cmd/tare/internal/flameverb"
	"github.com/tarehq/tare/cmd/tare/internal/flowverb"
	"github.com/tarehq/tare/cmd/tare/internal/gate"
	"github.com/tarehq/tare/cmd/tare/internal/helpverb"
	"github.com/tarehq/tare/cmd/tare/internal/initverb"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb"
	"github.com/tarehq/tare/cmd/tare/internal/manverb"
	"github.com/tarehq/tare/cmd/tare/internal/operatorverb"
	"github.com/tarehq/tare/cmd/tare/internal/proxyverb"
	"github.com/tarehq/tare/cmd/tare/internal/runverb"
	"github.com/tarehq/tare/cmd/tare/internal/traceverb"
	"github.com/tarehq/tare/cmd/tare/internal/trendverb"
	"github.com/tarehq/tare/cmd/tare/internal/watchverb"
	"github.com/tarehq/tare/cmd/tare/internal/webverb"
	"github.com/tarehq/tare/cmd/tare/internal/whatifverb"
	"github.com/tarehq/tare/docs"
	"github.com/tarehq/tare/studies"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// verbs are the command's verbs, in the order and the groups of tare help.
type verbs struct {
	Cost       costverb.Command      `cmd:"" group:"Running services:" help:"Show what each middleware, router, engine and handler of a running service costs."`
	Doctor     doctorverb.Command    `cmd:"" group:"Running services:" help:"Diagnose a running service: problems, their cost and remedies."`
	Trace      traceverb.Command     `cmd:"" group:"Running services:" help:"Show what slow requests waited for: locks, processors, garbage collection, other services."`
	Diff       diffverb.Command      `cmd:"" group:"Running services:" help:"Compare two sets of profiles and test each difference."`
	Watch      watchverb.Command     `cmd:"" group:"Running services:" help:"Watch services all the time: a table, metrics, kept profiles, and what became more expensive."`
	Whatif     whatifverb.Command    `cmd:"" group:"Running services:" help:"Slow one owner down, on and off, to measure what its time costs a request."`
	Flame      flameverb.Command     `cmd:"" group:"Running services:" help:"Draw a flame graph coloured by owner."`
	Load       loadverb.Command      `cmd:"" group:"Load:" help:"Load a URL and measure its responses."`
	Flow       flowverb.Command      `cmd:"" group:"Load:" help:"Load a service with users who follow the steps of a file."`
	Agent      agentverb.Command     `cmd:"" group:"Load:" help:"Generate load for a coordinator on another host."`
	Ab         ab.Cmd                `cmd:"" group:"Comparisons:" help:"Compare your own services: builds, commits, settings, programs or URLs."`
	Init       initverb.Command      `cmd:"" group:"Comparisons:" help:"Write a study file for the service in this folder."`
	Run        runverb.Command       `cmd:"" group:"Comparisons:" help:"Run a study and report its verdicts."`
	Gate       gate.Cmd              `cmd:"" group:"Comparisons:" help:"Pass or fail a run against a budget."`
	List       listCmd               `cmd:"" group:"Comparisons:" help:"List the studies and the kept runs."`
	Report     reportCmd             `cmd:"" group:"Comparisons:" help:"Show or write a run's report."`
	Compare    compareCmd            `cmd:"" group:"Comparisons:" help:"Compare two runs through their shared control."`
	Trend      trendverb.Command     `cmd:"" group:"Comparisons:" help:"Show a metric of a study over its runs."`
	Web        webverb.Command       `cmd:"" group:"Comparisons:" help:"Serve the runs of a folder as web pages: history, comparisons, a live view."`
	Claims     claims.Cmd            `cmd:"" group:"Comparisons:" help:"List the published claims and their measurements."`
	Advise     adviseverb.Command    `cmd:"" group:"Comparisons:" help:"Recommend router, engine, proxy and middlewares, by your needs and by measurements."`
	Env        envCmd                `cmd:"" group:"This machine:" help:"Check what on this machine disturbs measurements."`
	Calibrate  calibrate.Cmd         `cmd:"" group:"This machine:" help:"Measure this machine's noise floor."`
	Selftest   calibrate.SelftestCmd `cmd:"" group:"This machine:" help:"Run A/A studies and count false positives."`
	Proxy      proxyverb.Command     `cmd:"" group:"Servers and clusters:" help:"Run a reverse proxy that a YAML file describes."`
	Operator   operatorverb.Command  `cmd:"" group:"Servers and clusters:" help:"Run studies and load tests declared as Kubernetes resources."`
	Help       helpverb.Command      `cmd:"" group:"Help:" help:"Print a page of the documentation."`
	Man        manverb.Command       `cmd:"" group:"Help:" help:"Print a manual page, or write all of them."`
	Completion completionCmd         `cmd:"" group:"Help:" help:"Print a shell's completion script."`
	Version    versionCmd            `cmd:"" group:"Help:" help:"Print the version."`
}

const about = `tare weighs what each layer of a Go HTTP service costs.

Results go to standard output, everything else to standard error.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 a threshold or gate failed, 4
inconclusive, 5 the requested load was not offered, 6 the watched process or service
ended, 130 interrupted. Status 3 of doctor is a finding. With whatif it means stopped;
with env --strict, disturbed.`

func main() {
	log.SetOutput(io.Discard) // net/http's: a line for each odd frame that a hostile server sends
	ctx, stop := interruptible(context.Background())
	defer stop()
	t := &cli.Terminal{Out: os.Stdout, Err: os.Stderr, Width: cli.Columns(os.Stdout)}
	smart := os.Getenv("TERM") != "dumb"
	if term.IsTerminal(int(os.Stderr.Fd())) {
		t.Live, t.Columns = smart && cli.Foreground(os.Stderr), cli.Columns(os.Stderr)
	}
	t.Piped = !term.IsTerminal(int(os.Stdout.Fd()))
	t.Colour = smart && !t.Piped && os.Getenv("NO_COLOR") == ""
	if _, lines, err := term.GetSize(int(os.Stdout.Fd())); err == nil && smart {
		t.Screen, t.Lines = os.Stdout, lines
	}
	os.Exit(run(ctx, os.Args[1:], t))
}

// newParser reads command lines into v; exit is called once help was printed.
func newParser(ctx context.Context, v *verbs, t *cli.Terminal, exit func(code int)) (*kong.Kong, error) {
	return kong.New(v,
		kong.Name("tare"), kong.Description(about), kong.Writers(t.Out, t.Err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Help(printHelp(t)), kong.Exit(exit),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(t),
		kong.NamedMapper("pid", kong.MapperFunc(decodeProcess)),
	)
}

// printHelp prints the help of tare or of a verb, and which pages say more.
func printHelp(t *cli.Terminal) kong.HelpPrinter {
	return func(o kong.HelpOptions, parsed *kong.Context) error {
		if err := kong.DefaultHelpPrinter(o, parsed); err != nil {
			return err
		}
		verb := ""
		if n := parsed.Selected(); n != nil {
			verb = n.Name
		}
		helpverb.PrintGuide(t, verb)
		return nil
	}
}

// helpArgs are the arguments that a call for help stands for: of a verb without a page, its
// flags, and of a study, what it is.
func helpArgs(verbs []*kong.Node, args []string) []string {
	if len(args) == 1 {
		return []string{"--help"}
	}
	isVerb := slices.ContainsFunc(verbs, func(n *kong.Node) bool { return n.Name == args[1] })
	if isVerb && !docs.IsTopic(args[1]) {
		return append(args[1:], "--help")
	}
	if _, err := studies.Named(args[1]); err == nil && !docs.IsTopic(args[1]) {
		return append([]string{"list"}, args[1:]...)
	}
	return args
}

// decodeProcess reads the number of a process. 0 is none, though a flag that was
// left out is 0 as well.
func decodeProcess(ctx *kong.DecodeContext, to reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("number", &text); err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a process ID", text)
	}
	to.SetInt(int64(n))
	return nil
}

// meant is a command line with the verb that it stands for.
func meant(verbs []*kong.Node, args []string) []string {
	has := func(flag string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return arg == flag || strings.HasPrefix(arg, flag+"=") })
	}
	switch {
	case args[0] == "help":
		return helpArgs(verbs, args)
	case args[0] == "--version", args[0] == "-v":
		args[0] = "version"
	case args[0] == "load" && len(args) > 1 && (flowverb.IsFile(args[1]) || has("--from")):
		args[0] = "flow"
	case args[0] == "doctor" && has("--since"): // of what tare watch kept
		args[0] = "watch"
	}
	return args
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, t *cli.Terminal) int {
	var v verbs
	out, mine := &noted{Writer: t.Out}, *t
	mine.Out, t = out, &mine
	status := -1
	parser, err := newParser(ctx, &v, t, func(code int) { status = code })
	if err != nil {
		panic(err) // a mistake in the verbs' tags, which every test would meet
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	args = meant(parser.Model.Children, args)
	if err := oneDash(parser.Model.Children, args); err != nil {
		return cli.PrintError(t, err)
	}
	parsed, err := parser.Parse(args)
	if status >= 0 { // help was printed
		return status
	}
	if unwritten := (*fs.PathError)(nil); errors.As(err, &unwritten) {
		return cli.PrintError(t, fmt.Errorf("printing help: %w", err)) // nothing else touches a file until a verb runs
	}
	if err != nil {
		return cli.PrintError(t, explainUsage(parser.Model.Children, args, err))
	}
	if flag := repeated(parsed, "pid", "cgroup", "container"); flag != "" {
		return cli.PrintError(t, cli.Usage("name one; `tare watch` takes several process IDs as arguments", fmt.Errorf("--%s is there twice", flag)))
	}
	t.Line, t.Given = args, flagsIn(parsed)
	err = perform(ctx, patience(parsed), func() error { return parsed.Run() })
	if lost := out.first(); lost != nil && shown(err) {
		err = fmt.Errorf("writing the result: %w", lost)
	}
	return cli.PrintError(t, err)
}

// flagsIn are those that stand on a command line.
func flagsIn(parsed *kong.Context) map[string]bool {
	all := map[string]bool{}
	for _, p := range parsed.Path {
		if p.Flag != nil {
			all[p.Flag.Name] = true
		}
	}
	return all
}

// repeated is which of these flags stands on a command line more than once; "" if none does.
func repeated(parsed *kong.Context, names ...string) string {
	all := map[string]bool{}
	for _, p := range parsed.Path {
		if p.Flag == nil || !slices.Contains(names, p.Flag.Name) {
			continue
		}
		if all[p.Flag.Name] {
			return p.Flag.Name
		}
		all[p.Flag.Name] = true
	}
	return ""
}

// oneDash refuses a flag's whole name behind one dash, as other tools take it: -rate=9
// would be -r with the value ate=9.
func oneDash(verbs []*kong.Node, args []string) error {
	i := slices.IndexFunc(verbs, func(n *kong.Node) bool { return n.Name == args[0] })
	if i < 0 {
		return nil
	}
	for _, a := range args[1:] {
		if a == "--" {
			break
		}
		name, dash := strings.CutPrefix(a, "-")
		name, _, _ = strings.Cut(name, "=")
		if dash && len(name) > 1 && slices.ContainsFunc(verbs[i].Flags, func(f *kong.Flag) bool { return f.Name == name }) {
			return cli.Usage("write --"+name, fmt.Errorf("%s has one dash: the whole name of a flag has two", a))
		}
	}
	return nil
}

// shown reports whether a verb that ended so has shown a result: err is none, or a
// status that speaks of one, that of what was measured until an interruption, too.
func shown(err error) bool {
	var f *cli.Failure
	return err == nil || errors.As(err, &f) && f.Status >= cli.ExitThreshold
}

// noted is an output that keeps its first error: verbs print without looking, and
// a result that nobody has is none. A verb that was left behind may still write.
type noted struct {
	io.Writer
	mu  sync.Mutex
	err error
}

func (n *noted) Write(p []byte) (int, error) {
	written, err := n.Writer.Write(p)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = cmp.Or(n.err, err)
	return written, err
}

func (n *noted) first() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}
