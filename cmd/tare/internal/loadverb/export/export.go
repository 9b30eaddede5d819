// Package export offers the figures of a running load to monitoring systems.
package export

import (
	"context"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
	"github.com/tarehq/tare/load"
)

// Flags say to whom. The zero value is to nobody.
type Flags struct {
	Prometheus string `help:"While the load runs, offer its state to Prometheus at http://ADDR/metrics, such as :9464." placeholder:"ADDR"`
	telemetry.Flag
}

// Exporter has the latest figures of a load. Nil offers nothing. It is safe for concurrent
// use, but for Note and Last, which one goroutine calls at a time.
type Exporter struct {
	to    *telemetry.Exporter
	begun beginning
}

// Open begins to offer figures. An error is a [cli.Failure].
func (f Flags) Open(ctx context.Context, t *cli.Terminal) (*Exporter, error) {
	to, err := telemetry.Open(ctx, telemetry.Options{Listen: f.Prometheus, OTLP: f.OTLP, Scope: "github.com/tarehq/tare/load"})
	if err != nil {
		return nil, telemetry.Explain(err, "--prometheus")
	}
	if to == nil {
		return nil, nil
	}
	if url := to.URL(); url != "" {
		t.Note("metrics at %s", url)
	}
	return &Exporter{to: to}, nil
}

// Note takes a state.
func (e *Exporter) Note(s load.Snapshot) {
	if e == nil {
		return
	}
	e.to.Note(newFigures(s, e.begun.of(s)))
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
	return e.to.Close()
}
