// Package traceverb shows what slow requests waited for: the verb trace.
package traceverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/cost/timeline"
)

// Command tells what slow requests waited for.
type Command struct {
	What        string `arg:"" optional:"" name:"url|pid|file" help:"A service with net/http/pprof, a process ID, or a trace saved by --save, runtime/trace or the flight recorder."`
	cli.Process `group:"Service:"`
	cli.For
	cli.Load `group:"Load:"`
	Slower   time.Duration `name:"slower-than" help:"Duration from which a request is slow (default: the slowest 1 %)." placeholder:"DURATION"`
	Samples  bool          `default:"true" negatable:"" help:"Also profile the CPU, to show where requests ran."`
	Top      int           `default:"3" help:"Number of slowest requests to show one by one."`
	JSON     bool          `group:"Output:" name:"json" help:"Print JSON."`
	HTML     string        `group:"Output:" name:"html" help:"Write one HTML file, with a bar for each of the slowest requests." placeholder:"FILE"`
	Save     string        `group:"Output:" help:"Save the trace, for tare trace FILE or go tool trace FILE." placeholder:"FILE"`
}

// Help says what is counted and what tracing costs.
func (c *Command) Help() string {
	return `Examples:

  tare trace --slower-than 50ms localhost:6060
  tare trace --load http://localhost:8080/users localhost:6060
  tare trace --pid 4711
  tare trace slow-20261121T164423.123456.trace   a snapshot of the flight recorder

trace accounts for the whole time of every request, by owner: running, ready without a
processor (scheduler), garbage collection, or waiting. It waits for a lock, a channel,
another service, the client, a timer or a system call.

A request begins when its first bytes wake the server. The trace does not show the time
before that, in the network and the kernel.

Tracing costs the service CPU while it runs: 2 to 12 % where measured, and up to 18 %
with samples.

Exit status: 6 if the service ended meanwhile.`
}

// Run records or reads a trace and shows what slow requests waited for.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if err := c.check(t); err != nil {
		return err
	}
	s := &story{}
	f, err := c.open(ctx, t, s)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.Requests, err = readTwice(f, exectrace.Options{SlowerThan: c.Slower, Top: max(1, c.Top)}); err != nil {
		err = fmt.Errorf("%s: %w", s.Source, err)
		switch {
		case s.saved:
			return err
		case ctx.Err() != nil: // the service writes a second of it at a time
			return explain(&capture.ProfileError{Err: ctx.Err()})
		case isTrace(f): // of a form that others may know
			return errors.Join(explain(&capture.ProfileError{Err: err}), c.keep(f))
		}
		return explain(&capture.ProfileError{Err: err}) // what was fetched is no trace
	}
	s.Requests.Warnings = append(s.warnings, s.Requests.Warnings...)
	err = errors.Join(c.keep(f), cli.WriteFile(c.HTML, func(w io.Writer) error { return timeline.Write(w, s.Source, s.Requests) }))
	return t.Show(ctx, cli.Result{JSON: s, Page: s.page(c.Top)}, c.JSON, err)
}

// readTwice reads a trace for the middlewares' chains first, and then for its requests.
func readTwice(f io.ReadSeeker, o exectrace.Options) (*exectrace.Requests, error) {
	if t, err := exectrace.Read(f); err == nil {
		o.Rules = t.Learn()
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return exectrace.ReadRequests(f, o)
}

const remedy = "tare trace URL, tare trace FILE, or tare trace --pid N"

func (c *Command) check(t *cli.Terminal) error {
	if c.Slower < 0 || c.Top < 0 {
		return cli.Usage("", errors.New("--slower-than and --top are no less than 0"))
	}
	return cmp.Or(c.For.Check(time.Minute), c.Load.Check(t),
		cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: c.HTML}, {Flag: "--save", Path: c.Save}}, c.What))
}

// open returns the trace: the file that was named, or one that is recorded now and
// gone once it is closed.
func (c *Command) open(ctx context.Context, t *cli.Terminal, s *story) (*os.File, error) {
	if info, err := os.Stat(c.What); err == nil && info.Mode().IsRegular() && !c.Named() {
		if err := t.RefuseFlags(true, "for a trace that is there already", "load", "save", "for", "samples"); err != nil {
			return nil, err
		}
		s.Source, s.saved = c.What, true
		return os.Open(c.What)
	}
	service, err := c.Process.Service(c.What, remedy)
	if err != nil {
		return nil, err
	}
	target, err := service.Find(ctx, capture.Own)
	if err != nil {
		return nil, explain(err)
	}
	s.Source = target.Profiles.String()
	f, err := os.CreateTemp("", "tare-*.trace")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name()) // it is there until it is closed
	r := capture.Recording{For: c.For.For, Samples: c.Samples, Load: c.Load.Options(), To: f, Progress: t.NoteLine}
	warnings, err := r.Record(ctx, target)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, explain(err)
	}
	s.warnings = cli.Texts(warnings)
	return f, nil
}

// keep writes the trace to where --save says. Nothing else is written there: it may be
// where a trace was kept before.
func (c *Command) keep(f *os.File) error {
	return cli.WriteFile(c.Save, func(w io.Writer) error { return rewound(w, f) })
}

// isTrace reports whether a file begins as every trace does.
func isTrace(f *os.File) bool {
	const head = "go 1."
	begin := make([]byte, len(head))
	_, err := f.ReadAt(begin, 0)
	return err == nil && string(begin) == head
}

// rewound copies a file from its beginning.
func rewound(w io.Writer, f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, f)
	return err
}

// explain says why a service cannot be traced.
func explain(err error) error {
	err = cli.ExplainCapture(err)
	var f *cli.Failure
	switch {
	case !errors.As(err, &f):
	case f.Status == cli.ExitInterrupted:
		f.Err = errors.New("interrupted before a first second of the trace was there")
		f.Hint = ""
	case f.Hint == cli.ExposeHint:
		f.Hint += "; only one trace may run at a time"
	case errors.Is(err, pprof.ErrTooLarge):
		f.Hint = "a shorter --for makes a smaller trace, and so do fewer requests"
	}
	return err
}
