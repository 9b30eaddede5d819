// Package loadverb loads a URL, shows the load and reports it: the verb load.
package loadverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb/export"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb/journal"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb/redirect"
	"github.com/tarehq/tare/cmd/tare/internal/pods"
	"github.com/tarehq/tare/cmd/tare/internal/remote"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// Command loads URLs and measures their answers.
type Command struct {
	URLs     []string `arg:"" optional:"" name:"url" help:"URLs to request, in equal shares. The scheme defaults to http; :8080 is a port of this machine."`
	Offer    Offer    `embed:"" group:"Load:"`
	Request  Request  `embed:"" group:"Requests:"`
	Carriage Carriage `embed:"" group:"Connections:"`

	remote.Flags `embed:"" group:"Agents:"`

	Verify Verify `embed:"" group:"Verification (a response that fails it counts as an error):"`
	Judge  Judge  `embed:"" group:"Judgement:"`
	Output Output `embed:"" group:"Output:"`
}

// Offer says how much is asked for.
type Offer struct {
	Connections int           `short:"c" help:"Number of connections (0: 64); with --rate the maximum (0: 4096)."`
	Duration    time.Duration `short:"d" help:"Length of the measured part (0: 10s, unless -n or a schedule ends it). With --find-max, length of each probe (0: 5s)."`
	Requests    int64         `short:"n" help:"Number of measured requests (0: as many as fit)."`
	Rate        string        `short:"r" help:"Open loop: requests a second, independent of responses. Also poisson:1000, ramp:100-5000/30s or steps:100,200,400/10s." placeholder:"RATE"`
	MaxInFlight int           `help:"With --rate: most requests in flight or waiting for a connection; further ones are dropped and counted (0: no limit)." placeholder:"N"`
	WarmUp      time.Duration `help:"Length of the load before the measured part."`
	FindMax     string        `help:"Find the highest rate that holds this threshold, such as 'p99<50ms'." placeholder:"THRESHOLD"`
	Seed        uint64        `help:"Seed for random arrivals and the choice of URLs (0: 1)."`
}

// Request says what is asked for.
type Request struct {
	Method string `short:"m" help:"Method (default: GET, or POST with a body)."`
	cli.Headers
	User     string `help:"Name and password for HTTP basic authentication." placeholder:"NAME:PASSWORD"`
	Follow   bool   `help:"Follow redirects of GET and HEAD once, before the load, and load where they lead."`
	Body     string `short:"b" xor:"body" help:"Body." placeholder:"TEXT"`
	BodyFile string `xor:"body" help:"File that holds the body." placeholder:"FILE"`
	Targets  string `help:"File with a request per line: [METHOD] URL [WEIGHT]; # begins a comment." placeholder:"FILE"`
	Feed     string `help:"CSV or JSON Lines file. Each record fills {{.name}} in URL, header fields and body of one request." placeholder:"FILE"`
}

// Carriage says how requests travel.
type Carriage struct {
	Timeout        time.Duration `default:"30s" help:"Timeout of one request, connecting included (0: none)."`
	NewConnections share         `help:"Share of requests that open a new connection, such as 0.1 or 10% (without a value: all)."`
	TLSResume      bool          `name:"tls-resume" default:"true" negatable:"" help:"Resume TLS sessions."`
	CA             string        `name:"ca" help:"PEM file of certificate authorities to trust." placeholder:"FILE"`
	Insecure       bool          `short:"k" help:"Do not verify certificates."`
	HTTP2          bool          `name:"http2" xor:"protocol" help:"Use HTTP/2: negotiated on https, with prior knowledge on http."`
	HTTP3          bool          `name:"http3" xor:"protocol" help:"Use HTTP/3 (https only)."`
	Streams        int           `help:"With --http2 or --http3: requests in flight on a connection (0: 1; with --rate at most 100)." placeholder:"N"`
	Pipeline       int           `help:"Requests that a connection sends before it reads their responses (0: 1)." placeholder:"N"`
	Proxy          string        `short:"x" help:"HTTP proxy to go through, such as http://NAME:PASSWORD@HOST:3128. Tunnels (CONNECT) carry https and HTTP/2." placeholder:"URL"`
	Unix           string        `help:"Unix socket to connect to, instead of the URL's host." placeholder:"PATH"`
	Threads        int           `short:"t" help:"Number of event loops (0: one per CPU; with --rate at most one per 25,000 requests a second)." placeholder:"N"`
	Spin           time.Duration `help:"Busy-poll this long before each start (0: 60us while a CPU is free). Set it where the CPUs are reserved for tare." placeholder:"DURATION"`
	Engine         string        `enum:"auto,epoll,goroutine" default:"auto" help:"Engine that sends requests: auto, epoll or goroutine."`
}

// Verify says which answers are correct.
type Verify struct {
	VerifyStatus int      `help:"Status that responses must have." placeholder:"CODE"`
	VerifyHeader []string `sep:"none" help:"Header field that responses must have, as 'Name: value'; repeatable." placeholder:"FIELD"`
	VerifyBody   string   `help:"Text that bodies must contain." placeholder:"TEXT"`
	VerifyLength *int64   `help:"Length that bodies must have, in bytes." placeholder:"N"`
	VerifySHA256 string   `name:"verify-sha256" help:"SHA-256 that bodies must have." placeholder:"HEX"`
}

// Output says where results go.
type Output struct {
	JSON     bool         `name:"json" help:"Print JSON instead of the summary."`
	Output   string       `short:"o" help:"Write the JSON to a file, atomically." placeholder:"FILE"`
	CSV      string       `name:"csv" help:"Write the time series as CSV." placeholder:"FILE"`
	HTML     string       `name:"html" help:"Write the summary as one HTML file." placeholder:"FILE"`
	Markdown string       `help:"Write the summary as Markdown." placeholder:"FILE"`
	HDR      string       `name:"hdr" help:"Write the histograms as an HdrHistogram log." placeholder:"FILE"`
	Journal  string       `help:"Write the state of the run every second as a JSON line (with -o X.json: X.journal.jsonl)." placeholder:"FILE"`
	Export   export.Flags `embed:""`
	Quiet    bool         `short:"q" help:"Print no progress."`
}

// Help shows examples.
func (c *Command) Help() string {
	return `Examples:

  tare load localhost:8080             64 connections kept busy for 10 s
  tare load -c 256 -d 30s URL          256 for 30 s
  tare load -r 1000 -d 1m URL          1,000 requests a second, come what may
  tare load -r ramp:100-5000/30s URL   from 100 to 5,000 a second within 30 s
  tare load --find-max 'p99<50ms' URL  the highest rate with p99 under 50 ms
  tare load --fail-if 'p99>50ms' URL   exit with status 3 if p99 is above 50 ms
  tare load --on h1,h2 --certs certs URL  by agents on the hosts h1 and h2
  tare load --on k8s:shop URL          by pods in the namespace shop

With --rate, response times count from the intended start of each request, so they
include the wait that a stalled server causes. Without --rate, each connection sends its
next request after a response, and a stall hides the delay of later requests.

Exit status (of several, 130 comes first, then 3, 1, 5 and 4):

    0    done, and all thresholds held
    1    failed: no usable response (connection refused, --verify, or all have status 4xx
         or 5xx and --verify-status does not expect that), or output not written
    2    wrong usage
    3    a threshold failed
    4    too few requests to judge a threshold
    5    the requested rate was not offered (requests dropped or late), or the generator
         was busy for over 80 % of the time
    130  interrupted; the report shows what was measured`
}

// Run offers the load, writes what was asked for and judges.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if err := c.Judge.parse(); err != nil {
		return err
	}
	if err := c.Output.check(c.Request.Feed, c.Request.BodyFile, c.Request.Targets, c.Carriage.CA); err != nil {
		return err
	}
	if _, yes := c.InPods(); yes {
		return c.runInPods(ctx, t, o)
	}
	if c.Request.Follow {
		if err := redirect.Follow(ctx, &o); err != nil {
			return explainFailure(err)
		}
	}
	if c.Offer.FindMax != "" {
		return c.search(ctx, t, o)
	}
	ctx, w, err := c.watch(ctx, t)
	if err != nil {
		return err
	}
	defer w.restore() // whatever happens
	o.Progress = w.progress
	res, rep, err := c.Load(ctx, o, c.Carriage.CA)
	w.o.Export.Last(res)
	werr := w.close()
	if res == nil {
		return explainRefusal(err)
	}
	s := &summary{res: res, open: o.Schedule != nil, planned: planned(o), title: c.title(), outcomes: c.Judge.outcomes(res), agents: rep}
	return c.finish(t, s, cmp.Or(err, unreachable(ctx, res), werr))
}

// runInPods has the whole command run in a namespace of a Kubernetes cluster.
func (c *Command) runInPods(ctx context.Context, t *cli.Terminal, o load.Options) error {
	f := pods.Command{
		Reads:   []string{c.Request.BodyFile, c.Request.Targets, c.Carriage.CA},
		Writes:  []string{c.Output.Output, c.Output.HTML, c.Output.Markdown, c.Output.CSV, c.Output.HDR, c.Output.journalPath()},
		Targets: []string{o.Proxy},
	}
	for _, target := range o.Targets {
		f.Targets = append(f.Targets, target.URL)
	}
	return c.RunInPods(ctx, t, f)
}

// watch begins to show and to journal what runs within the context returned,
// which ends when the user wants it to or nothing can be reached.
func (c *Command) watch(ctx context.Context, t *cli.Terminal) (context.Context, *watcher, error) {
	j, err := journal.Open(c.Output.journalPath())
	if err != nil {
		return nil, nil, err
	}
	exporter, err := c.Output.Export.Open(ctx, t)
	if err != nil {
		return nil, nil, cmp.Or(err, j.Close())
	}
	ctx, stop := context.WithCancelCause(ctx)
	w := newWatcher(t, watcherOptions{
		Title: c.title(), Journal: j, Export: exporter, Quiet: c.Output.Quiet, Open: c.Offer.Rate != "" || c.Offer.FindMax != "",
		Requests: c.Offer.Requests, Stop: stop, StatusAsked: c.Verify.VerifyStatus != 0,
		Patient: c.Offer.FindMax != "", // a search ends by itself, and says why
	})
	context.AfterFunc(ctx, w.ending)
	return ctx, w, nil
}

// finish writes and shows a result. err is what went wrong with the run or its
// journal: the result is kept all the same.
func (c *Command) finish(t *cli.Terminal, s *summary, err error) error {
	d := document{Title: s.title, Thresholds: s.outcomes, Agents: s.agents, Result: s.res}
	lost := errors.Join(c.Output.keep(d), c.Output.show(t, s.page(t.Width), d))
	if c.Output.JSON {
		for _, o := range s.outcomes {
			fmt.Fprintln(t.Err, o)
		}
	}
	switch {
	case err != nil:
		return explainFailure(err)
	case lost != nil:
		return lost
	}
	return s.verdict()
}

// planned is how long o asks for; 0 when the number of requests decides in the closed
// loop.
func planned(o load.Options) time.Duration {
	d := o.Duration
	if o.Schedule != nil {
		if length, ends := o.Schedule.Length(); ends && (d == 0 || length < d) {
			d = length
		}
		if o.Requests > 0 {
			if at, ok := startOf(o.Schedule, o.Requests); ok && (d == 0 || at < d) {
				d = at
			}
		}
	}
	if d == 0 && o.Requests == 0 {
		d = 10 * time.Second
	}
	return d
}

// startOf is when s wants request n, from 0, to begin: where arrivals are random, on
// average. ok is false where it ends before.
func startOf(s *pace.Schedule, n int64) (at time.Duration, ok bool) {
	even, share := pace.Schedule{Phases: s.Phases}, int(min(n, math.MaxInt-1))
	return even.Cursor(share, share+1).Next()
}
