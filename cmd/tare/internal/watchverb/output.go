package watchverb

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
	"github.com/tarehq/tare/cmd/tare/internal/watchverb/upload"
	"github.com/tarehq/tare/cost/watch"
	"github.com/tarehq/tare/cost/watch/ring"
	"github.com/tarehq/tare/cost/watch/total"
)

// output is where intervals go.
type output struct {
	c      *Command
	t      *cli.Terminal
	begun  time.Time
	totals total.Totals
	held   map[watch.Build]*held
	kept   map[string]string // by service: its latest profile, below the ring's folder
	failed map[string]int    // by what did not work: how often
	said   map[string]bool   // warnings

	ring   *ring.Ring   // nil: none
	root   *os.Root     // its folder
	zip    *gzip.Writer // of profiles, one after the other: each takes a megabyte
	upload *upload.Server
	export *telemetry.Exporter
}

// open begins to offer what will be seen.
func (c *Command) open(ctx context.Context, t *cli.Terminal) (*output, error) {
	o := &output{c: c, t: t, begun: time.Now(), totals: total.Totals{Owners: c.MaxOwners},
		held: map[watch.Build]*held{}, kept: map[string]string{}, failed: map[string]int{}, said: map[string]bool{}}
	if err := o.openAll(ctx); err != nil {
		return nil, errors.Join(err, o.close())
	}
	if url := o.export.URL(); url != "" {
		t.Note("metrics at %s", url)
	}
	return o, nil
}

func (o *output) openAll(ctx context.Context) (err error) {
	c := o.c
	var files http.Handler
	if c.Keep != "" {
		if o.ring, err = ring.Open(c.Keep, int64(c.KeepBytes)); err != nil {
			return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("--keep: %w", err), Hint: "--keep takes a folder that you may write to and no other tare does"}
		}
		if o.root, err = os.OpenRoot(c.Keep); err != nil {
			return err
		}
		files = serveKept(o.root)
	}
	if c.Profiles != "" {
		if o.upload, err = upload.Open(c.Profiles); err != nil {
			return cli.Usage("--profiles takes a URL such as http://localhost:4040", fmt.Errorf("--profiles: %w", err))
		}
	}
	listen := c.Listen
	if listen != "" {
		listen = address(listen)
	}
	o.export, err = telemetry.Open(ctx, telemetry.Options{Listen: listen, OTLP: c.OTLP, Write: c.RemoteWrite, Scope: "github.com/tarehq/tare/cost/watch", Handler: files})
	if err != nil {
		return telemetry.Explain(err, "--listen")
	}
	return nil
}

// show takes an interval.
func (o *output) show(i *watch.Interval) error {
	o.totals.Add(i)
	o.keep(i)
	if o.upload != nil {
		if n, why := o.upload.Lost(); n > 0 {
			o.fail("upload", n, why)
		}
	}
	if err := o.export.Failed(); err != nil {
		o.fail("otlp", 1, err)
	}
	if lost, why := o.export.Unwritten(); why != nil {
		o.fail("write", lost, why)
	}
	if o.export != nil {
		o.export.Note(o.figures(i))
	}
	for _, w := range i.Warnings {
		o.warn(w.Error())
	}
	for _, s := range i.Services {
		for _, w := range s.Bill.Warnings {
			o.warn(s.Name + ": " + w)
		}
	}
	return o.c.print(o.t, i)
}

// fail counts what did not work. Watching goes on.
func (o *output) fail(what string, n int, why error) {
	o.failed[what] += n
	o.warn(why.Error())
}

// warn says something once, or again after much else was said.
func (o *output) warn(text string) {
	const most = 1000
	if o.said[text] {
		return
	}
	if len(o.said) > most {
		clear(o.said)
	}
	o.said[text] = true
	o.t.Note("warning: %s", text)
}

// close sends what is left.
func (o *output) close() error {
	var errs []error
	o.release(func(*held) bool { return true })
	if o.upload != nil {
		errs = append(errs, o.upload.Close())
	}
	errs = append(errs, o.export.Close())
	if o.root != nil {
		errs = append(errs, o.root.Close())
	}
	if o.ring != nil {
		errs = append(errs, o.ring.Close())
	}
	return errors.Join(errs...)
}
