// Package telemetry offers figures to monitoring systems: to Prometheus, which scrapes
// them or has them written to it, and to receivers of OpenTelemetry, to which they are sent.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// Flag names a receiver of OpenTelemetry.
type Flag struct {
	OTLP string `name:"otlp" help:"Meanwhile, send the figures to an OpenTelemetry receiver (OTLP over HTTP), such as http://localhost:4318." placeholder:"URL"`
}

// Kind is what a figure is, by Prometheus's names.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Summary   Kind = "summary"
	Histogram Kind = "histogram"
)

// Figures are those of a moment. Nobody changes them once they are offered.
type Figures struct {
	At, Since time.Time // when they were so, and since when they count
	Families  []Family
}

// Family is a figure by its labels.
type Family struct {
	Name, Help string // the name is without "tare", its words parted by dots
	Kind       Kind
	Unit       string // in UCUM's code
	Points     []Point
}

// Label is one of a point's.
type Label struct{ Name, Value string }

// Point is a value of a figure.
type Point struct {
	Labels   []Label
	Value    float64
	Times    *Times    // of a summary or a histogram, instead of the value
	Exemplar *Exemplar // of a counter; nil: none
}

// Times are a distribution, in the family's unit.
type Times struct {
	Count     uint64
	Sum       float64
	Quantiles []Quantile // of a summary; none where nothing was counted
	Buckets   []Bucket   // of a histogram, by their bounds; what is beyond the last is in Count alone
}

// Quantile is a value that a share of all does not exceed.
type Quantile struct {
	Quantile float64 `json:"quantile"`
	Value    float64 `json:"value"`
}

// Bucket counts values up to a bound, beyond that of the bucket before.
type Bucket struct {
	Most  float64
	Count uint64
}

// Exemplar is an instance of what a counter counts.
type Exemplar struct {
	Labels []Label // 128 characters at most, names and values together
	Value  float64
	At     time.Time
}

// Options say to whom figures are offered. The zero value is to nobody.
type Options struct {
	Listen  string       // an address to answer scrapes at, such as ":9464"
	OTLP    string       // the URL of a receiver
	Write   string       // the URL of one of Prometheus's remote write
	Scope   string       // of what sends: the path of a package
	Handler http.Handler // answers what is no scrape; nil: nobody does
}

// Exporter has the latest figures. Nil offers nothing. It is safe for concurrent use.
type Exporter struct {
	latest atomic.Pointer[Figures] // nil: none yet
	scrape *server                 // nil: none
	push   *pusher                 // nil: none
	write  *writer                 // nil: none
}

// Open begins to offer figures. An error that is no ReceiverError or URLError is of the
// address.
func Open(ctx context.Context, o Options) (*Exporter, error) {
	if o.Listen == "" && o.OTLP == "" && o.Write == "" {
		return nil, nil
	}
	e := new(Exporter)
	if o.OTLP != "" {
		p, err := newPusher(o.OTLP, o.Scope, &e.latest)
		if err != nil {
			return nil, &URLError{otlpFlag, err}
		}
		if err := p.send(ctx, nil); err != nil { // nothing yet: a receiver takes that too
			return nil, &ReceiverError{otlpFlag, err}
		}
		e.push = p
	}
	if o.Write != "" {
		w, err := newWriter(o.Write)
		if err != nil {
			return nil, &URLError{writeFlag, err}
		}
		if err := w.try(ctx); err != nil {
			return nil, &ReceiverError{writeFlag, err}
		}
		e.write = w
	}
	if o.Listen != "" {
		s, err := listen(o.Listen, o.Handler, &e.latest)
		if err != nil {
			return nil, err
		}
		e.scrape = s
	}
	if e.push != nil {
		go e.push.run()
	}
	if e.write != nil {
		go e.write.run()
	}
	return e, nil
}

// The flags that name receivers.
const (
	otlpFlag  = "--otlp"
	writeFlag = "--remote-write"
)

// URLError says that what names a receiver is no URL of one.
type URLError struct {
	flag string
	Err  error
}

func (e *URLError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *URLError) Unwrap() error { return e.Err }

// ReceiverError says that a receiver takes nothing.
type ReceiverError struct {
	flag string
	Err  error
}

func (e *ReceiverError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ReceiverError) Unwrap() error { return e.Err }

// Explain says what to do about an error of Open; listening is the flag that names where to
// answer.
func Explain(err error, listening string) error {
	example := map[string]string{otlpFlag: "http://localhost:4318", writeFlag: "http://localhost:9090"}
	hint := map[string]string{
		otlpFlag:  "4318 is the usual port of OTLP over HTTP, 4317 that of gRPC; a URL without a path means /v1/metrics",
		writeFlag: "Prometheus takes it if it runs with --web.enable-remote-write-receiver; a URL without a path means " + writePath,
	}
	if e, ok := errors.AsType[*URLError](err); ok {
		return cli.Usage(e.flag+" takes a URL such as "+example[e.flag], fmt.Errorf("%s: %w", e.flag, err))
	}
	if e, ok := errors.AsType[*ReceiverError](err); ok {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s: %w", e.flag, err), Hint: hint[e.flag]}
	}
	return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s: %w", listening, err), Hint: cli.ListenHint(err, listening)}
}

// URL is where to scrape; "" if nobody is answered.
func (e *Exporter) URL() string {
	if e == nil || e.scrape == nil {
		return ""
	}
	return fmt.Sprintf("http://%s/metrics", e.scrape.addr)
}

// Note offers figures in the place of those before.
func (e *Exporter) Note(f *Figures) {
	if e == nil {
		return
	}
	e.latest.Store(f)
	if e.write != nil {
		e.write.offer(f)
	}
}

// Failed is why the latest figures were not received by whom they are sent to; nil if they
// were, or nothing is sent.
func (e *Exporter) Failed() error {
	if e == nil || e.push == nil {
		return nil
	}
	if err := e.push.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Unwritten is how many of the requests of remote write were lost since this was last
// asked, and what went wrong last; an error alone is of one that is tried again.
func (e *Exporter) Unwritten() (lost int, why error) {
	if e == nil || e.write == nil {
		return 0, nil
	}
	return e.write.lost.Take()
}

// Close sends the latest figures and stops answering. An error tells of figures that did
// not arrive.
func (e *Exporter) Close() error {
	if e == nil {
		return nil
	}
	return errors.Join(e.push.close(), e.write.close(), e.scrape.close())
}
