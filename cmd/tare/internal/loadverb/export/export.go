// Package export offers the figures of a running load to monitoring systems.
package export

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/load"
)

// Flags say to whom. The zero value is to nobody.
type Flags struct {
	Prometheus string `help:"While the load runs, offer its state to Prometheus at http://ADDR/metrics, such as :9464." placeholder:"ADDR"`
	OTLP       string `name:"otlp" help:"While the load runs, send its state to an OpenTelemetry receiver (OTLP over HTTP), such as http://localhost:4318." placeholder:"URL"`
}

// Exporter has the latest figures of a load. Nil offers nothing. It is safe for concurrent
// use, but for Note and Last, which one goroutine calls at a time.
type Exporter struct {
	latest atomic.Pointer[figures] // nil: none yet
	begun  beginning
	scrape *server // nil: none
	push   *pusher // nil: none
}

// Open begins to offer figures. An error is a [cli.Failure].
func (f Flags) Open(ctx context.Context, t *cli.Terminal) (*Exporter, error) {
	if f == (Flags{}) {
		return nil, nil
	}
	e := new(Exporter)
	if f.OTLP != "" {
		p, err := newPusher(f.OTLP, &e.latest)
		if err != nil {
			return nil, cli.Usage("--otlp takes a URL such as http://localhost:4318", fmt.Errorf("--otlp: %w", err))
		}
		if err := p.send(ctx, nil); err != nil { // nothing, before the load: a receiver takes that too
			return nil, &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("--otlp: %w", err), Hint: "4318 is the usual port of OTLP over HTTP, 4317 that of gRPC; a URL without a path means /v1/metrics"}
		}
		e.push = p
	}
	if f.Prometheus != "" {
		s, err := listen(f.Prometheus, &e.latest)
		if err != nil {
			return nil, &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("--prometheus: %w", err), Hint: "--prometheus takes an address of this machine, such as :9464"}
		}
		e.scrape = s
		t.Note("metrics at %s", s.url())
	}
	if e.push != nil {
		go e.push.run()
	}
	return e, nil
}

// Note takes a state.
func (e *Exporter) Note(s load.Snapshot) {
	if e == nil {
		return
	}
	e.latest.Store(newFigures(s, e.begun.of(s)))
}

// Last takes what a run has measured; nil where it has not.
func (e *Exporter) Last(res *load.Result) {
	if res != nil {
		e.Note(load.Snapshot{Elapsed: res.Elapsed, Counts: res.Counts, Response: res.Response})
	}
}

// Close sends the latest state and stops answering. An error tells of figures that did
// not arrive.
func (e *Exporter) Close() error {
	if e == nil {
		return nil
	}
	return errors.Join(e.push.close(), e.scrape.close())
}
