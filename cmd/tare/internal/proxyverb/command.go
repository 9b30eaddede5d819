// Package proxyverb is the verb proxy: it runs a reverse proxy by a YAML file.
//
// The proxy is a program of its own, serve/proxy/gateway. It is given the file as JSON. What
// it finds wrong it says by paths, for which the verb finds line and column.
package proxyverb

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the schema
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/companion"
	"github.com/tarehq/tare/internal/shape"
)

// Command runs a reverse proxy.
type Command struct {
	File   string `arg:"" optional:"" help:"YAML file of upstreams and routes."`
	Check  bool   `help:"Validate the file and exit."`
	ToJSON bool   `name:"to-json" help:"Print the file as JSON, which the proxy's own program reads."`
	Schema bool   `help:"Print the JSON Schema of files, for editors, and exit."`

	Region  []string `placeholder:"ADDRESS" help:"Print which region an IP address is in by the file's database, and exit. May be repeated."`
	JSON    bool     `name:"json" help:"Print regions as JSON."`
	Replace string   `placeholder:"SOCKET" help:"Take over from the running proxy with this admin socket: no request is lost, and that proxy ends once its requests have."`
}

// schema is what serve/proxy/gateway -schema prints.
//
//go:embed schema.json
var schema string

// Help says what a file looks like.
func (c *Command) Help() string {
	return `Examples:

  tare proxy proxy.yaml
  tare proxy --check proxy.yaml
  tare proxy --to-json proxy.yaml > proxy.json
  tare proxy --schema > proxy.schema.json
  tare proxy --region 203.0.113.7 proxy.yaml
  tare proxy --replace /run/tare-proxy.sock proxy.yaml

A file of one service on two machines:

  listen:
    - address: 127.0.0.1:8080
  upstreams:
    api:
      servers:
        - address: 10.0.0.7:9000
        - address: 10.0.0.8:9000
  routes:
    - path: /
      upstream: api

tare reloads the file when it changes, and on SIGHUP. A file with a mistake changes
nothing. Open connections stay. On SIGTERM or an interrupt the proxy finishes the requests
that have begun, and ends. On SIGUSR2 a new process takes over the listening sockets, as
with --replace.

A release has the proxy beside tare, as tare-proxy. Elsewhere the first start builds it from
source, which needs Go.`
}

// Run serves until it is interrupted.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if err := c.checkFlags(); err != nil {
		return err
	}
	switch {
	case c.Schema:
		_, err := io.WriteString(t.Out, schema)
		return err
	case c.File == "":
		return cli.Usage(guide, errors.New("which file? name a YAML file of upstreams and routes"))
	}
	data, err := shape.ReadFile(c.File)
	if err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: guide}
	}
	f, err := c.parse(data)
	if err != nil {
		return err
	}
	program, err := companion.Proxy.Find(ctx, t)
	if err != nil {
		return err
	}
	switch {
	case len(c.Region) > 0:
		return c.showRegions(ctx, t, program, f)
	case c.Check || c.ToJSON:
		return c.show(ctx, t, program, f)
	}
	return c.serve(ctx, t, program, data, f)
}

// checkFlags refuses flags that ask for different things.
func (c *Command) checkFlags() error {
	asked := 0
	for _, is := range []bool{c.Check, c.ToJSON, c.Schema, len(c.Region) > 0, c.Replace != ""} {
		if is {
			asked++
		}
	}
	switch {
	case asked > 1:
		return cli.Usage("leave all but one out", errors.New("--check, --to-json, --schema, --region and --replace exclude one another"))
	case c.JSON && len(c.Region) == 0:
		return cli.Usage("leave it out", errors.New("--json does nothing without --region"))
	}
	return nil
}

// file is the file as JSON, and where its values stood.
type file struct {
	reader *shape.Reader
	json   []byte
}

const guide = "see `tare help proxy` for what a file may say"

// parse reads the file's YAML.
func (c *Command) parse(data []byte) (*file, error) {
	f := &file{reader: shape.NewReader(c.File, "proxy")}
	var tree any
	shape.Decode(f.reader, data, shape.Tree(), &tree)
	if err := f.reader.Err(); err != nil {
		return nil, cli.Usage(guide, err)
	}
	var err error
	f.json, err = json.Marshal(tree)
	return f, err
}

// mistakes are problems with their places in the file; nil if there are none.
func (f *file) mistakes(problems []problem) error {
	hint, status := guide, cli.ExitUsage
	for _, p := range problems {
		text := p.Text
		if p.Path != "" {
			text = shape.Last(p.Path) + ": " + text
		}
		if strings.HasSuffix(text, syscall.EADDRINUSE.Error()) { // that is not the file's fault
			hint, status = cli.ListenHint(syscall.EADDRINUSE, p.Path)+". To take over from a running proxy: --replace SOCKET", cli.ExitFailed
		}
		f.reader.Wrong(p.Path, "%s", text)
	}
	if err := f.reader.Err(); err != nil {
		return &cli.Failure{Status: status, Hint: hint, Err: err}
	}
	return nil
}

// show validates the file, and prints it if asked to.
func (c *Command) show(ctx context.Context, t *cli.Terminal, program string, f *file) error {
	r, err := examine(ctx, program, f.json, "-check")
	if err != nil {
		return err
	}
	if err := f.mistakes(r.Problems); err != nil {
		return err
	}
	if c.ToJSON {
		_, err := fmt.Fprintf(t.Out, "%s\n", f.json)
		return err
	}
	_, err = fmt.Fprintf(t.Out, "%s: valid\n", c.File)
	return err
}

// showRegions prints in which region addresses are.
func (c *Command) showRegions(ctx context.Context, t *cli.Terminal, program string, f *file) error {
	r, err := examine(ctx, program, f.json, "-region", strings.Join(c.Region, ","))
	if err != nil {
		return err
	}
	if err := f.mistakes(r.Problems); err != nil {
		return err
	}
	if c.JSON {
		return t.JSON(r.Regions)
	}
	width := 0
	for _, l := range r.Regions {
		width = max(width, len(l.Address))
	}
	for _, l := range r.Regions {
		if _, err := fmt.Fprintf(t.Out, "%-*s  %s\n", width, l.Address, cmp.Or(l.Region, "no region is known")); err != nil {
			return err
		}
	}
	return nil
}

// serving is the proxy's process, and those that it has taken the place of.
type serving struct {
	*gateway
	former []*gateway
}

// end ends them all. The error is that of the one that served last.
func (s *serving) end() error {
	var all sync.WaitGroup
	for _, g := range s.former {
		all.Go(func() { _ = g.end() }) // what it was at is over
	}
	err := s.gateway.end()
	all.Wait()
	return err
}

// serve runs the proxy until ctx ends, and gives it the file again when that changes.
func (c *Command) serve(ctx context.Context, t *cli.Terminal, program string, data []byte, f *file) error {
	again, restart := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Reset(syscall.SIGHUP) // else it ends the command
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	if signals := restartSignals(); len(signals) > 0 { // Notify would take none for all
		signal.Notify(restart, signals...)
		defer signal.Stop(restart)
	}
	g, err := start(program, t.Err, c.Replace)
	if err != nil {
		return err
	}
	s := &serving{gateway: g}
	defer s.end()
	if err := c.give(t, g, f); err != nil {
		return err
	}
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return s.end()
		case <-s.ended:
			return s.end()
		case <-restart:
			if err := c.restart(ctx, t, s); err != nil {
				t.Note("tare: kept the process that serves: %v", err)
			}
			continue
		case <-again:
			asked = true
		case <-look.C:
		}
		now, err := shape.ReadFile(c.File)
		if !asked && (err != nil || bytes.Equal(now, data)) {
			continue // an editor may be about to put it back
		}
		if err == nil {
			data = now
			err = c.reload(t, s.gateway, now)
		}
		if err != nil {
			t.Note("tare: kept the file that was served: %v", err)
		}
	}
}

// restart has another process take the place of the one that serves, which ends once its
// requests have.
func (c *Command) restart(ctx context.Context, t *cli.Terminal, s *serving) error {
	if s.admin == "" {
		return errors.New("the other process asks for the sockets by the admin socket: set admin to a path")
	}
	data, err := shape.ReadFile(c.File)
	if err != nil {
		return err
	}
	program, err := companion.Proxy.Find(ctx, t)
	if err != nil {
		return err
	}
	next, err := start(program, t.Err, s.admin)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = next.cmd.Process.Kill() }) // it may be stuck
	err = c.reload(t, next, data)
	stop()
	if err != nil {
		_ = next.end() // it serves nothing
		return err
	}
	s.former = append(slices.DeleteFunc(s.former, (*gateway).over), s.gateway)
	s.gateway = next
	return nil
}

func (c *Command) reload(t *cli.Terminal, g *gateway, data []byte) error {
	f, err := c.parse(data)
	if err != nil {
		return err
	}
	return c.give(t, g, f)
}

// give has the proxy serve the file.
func (c *Command) give(t *cli.Terminal, g *gateway, f *file) error {
	r, err := g.take(f.json)
	if err != nil {
		return err
	}
	if err := f.mistakes(r.Problems); err != nil {
		return err
	}
	for _, address := range r.Listening {
		t.Note("serving %s on %s", c.File, address)
	}
	if r.Admin != "" {
		t.Note("admin socket at %s", r.Admin)
	}
	return nil
}
