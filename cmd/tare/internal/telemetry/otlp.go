package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const pushPeriod = 5 * time.Second

// pusher sends the latest figures to an OTLP receiver, by HTTP and as JSON.
//
// Note: the official exporter does the same in Protobuf, and requires gRPC, Protobuf and
// OpenTelemetry's SDK.
type pusher struct {
	latest   *atomic.Pointer[Figures]
	receiver *Receiver
	resource resource
	scope    string
	failed   atomic.Pointer[error] // why the last sending did; nil: it did not
	stop     chan struct{}
	done     chan error // how the last sending ended
}

// newPusher is one that sends nothing yet.
func newPusher(raw, scope string, latest *atomic.Pointer[Figures]) (*pusher, error) {
	receiver, err := NewReceiver("metrics", raw, "/v1/metrics", "OTEL_EXPORTER_OTLP_HEADERS")
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // without a name, the process tells instances apart
	return &pusher{
		latest: latest, receiver: receiver, scope: scope,
		resource: resource{[]attribute{
			newAttribute("service.name", "tare"),
			newAttribute("service.instance.id", fmt.Sprintf("%s:%d", host, os.Getpid())),
		}},
		stop: make(chan struct{}), done: make(chan error, 1),
	}, nil
}

// run sends what is new every few seconds, and the last of it when there is no more.
func (p *pusher) run() {
	tick := time.NewTicker(pushPeriod)
	defer tick.Stop()
	var sent *Figures
	var err error
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-p.stop:
			ended = true
		}
		if f := p.latest.Load(); f != sent {
			if err = p.send(context.Background(), f); err == nil {
				sent = f
				p.failed.Store(nil)
			} else {
				p.failed.Store(&err)
			}
		}
	}
	p.done <- err
}

// close sends the last figures. Its error is about those: they hold all that came before.
func (p *pusher) close() error {
	if p == nil {
		return nil
	}
	close(p.stop)
	defer p.receiver.Close()
	return <-p.done
}

// send sends figures; nil is a request without any.
func (p *pusher) send(ctx context.Context, f *Figures) error {
	body, err := json.Marshal(request{p.resourceMetrics(f)})
	if err != nil {
		return fmt.Errorf("encoding metrics: %w", err)
	}
	return p.receiver.Post(ctx, body, judgeReply)
}

// judgeReply is what a receiver has against the metrics; nil is nothing.
func judgeReply(resp *http.Response, text []byte) error {
	var reply struct {
		Message string `json:"message"` // of a google.rpc.Status
		Partial struct {
			Rejected json.Number `json:"rejectedDataPoints"`
			Message  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		reply.Message = string(text[:min(len(text), 200)])
	}
	switch {
	case resp.StatusCode == http.StatusUnsupportedMediaType:
		return fmt.Errorf("it answered %s: it does not take OTLP as JSON", resp.Status)
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("it answered %s: %q", resp.Status, reply.Message)
	case cmp.Or(reply.Partial.Rejected, "0") != "0":
		return fmt.Errorf("it rejected %s of the values: %s", reply.Partial.Rejected, cmp.Or(reply.Partial.Message, "it does not say why"))
	}
	return nil
}

// resourceMetrics are figures as OTLP has them; none for nil.
func (p *pusher) resourceMetrics(f *Figures) []resourceMetrics {
	all := []resourceMetrics{}
	if f == nil {
		return all
	}
	s := scopeMetrics{Scope: scope{p.scope}}
	for _, m := range f.Families {
		if len(m.Points) == 0 {
			continue
		}
		s.Metrics = append(s.Metrics, newMetric(f, m))
	}
	return append(all, resourceMetrics{p.resource, []scopeMetrics{s}})
}

// newMetric is a family as OTLP has it. Counts of things are integers there.
func newMetric(f *Figures, m Family) metric {
	out := metric{Name: "tare." + m.Name, Description: m.Help, Unit: m.Unit}
	d := &data{}
	since, at := uint64(f.Since.UnixNano()), uint64(f.At.UnixNano())
	for _, p := range m.Points {
		point := dataPoint{Time: at}
		for _, l := range p.Labels {
			point.Attributes = append(point.Attributes, newAttribute(l.Name, l.Value))
		}
		if m.Kind != Gauge {
			point.Start = since
		}
		switch {
		case p.Times != nil:
			point.addTimes(m.Kind, p.Times)
		case m.Kind == Counter && strings.HasPrefix(m.Unit, "{"):
			point.Int = new(int64(p.Value))
		default:
			point.Double = new(p.Value)
		}
		d.Points = append(d.Points, point)
	}
	switch m.Kind {
	case Counter:
		d.Temporality, d.Monotonic, out.Sum = cumulative, true, d
	case Gauge:
		out.Gauge = d
	case Summary:
		out.Summary = d
	case Histogram:
		d.Temporality, out.Histogram = cumulative, d
	}
	return out
}

// addTimes has a point be that of a distribution.
func (d *dataPoint) addTimes(kind Kind, t *Times) {
	d.Count, d.Sum, d.Quantiles = new(t.Count), new(t.Sum), t.Quantiles
	if kind != Histogram {
		return
	}
	beyond := t.Count
	for _, b := range t.Buckets {
		d.Bounds = append(d.Bounds, b.Most)
		d.Buckets = append(d.Buckets, strconv.FormatUint(b.Count, 10))
		beyond -= b.Count
	}
	d.Buckets = append(d.Buckets, strconv.FormatUint(beyond, 10))
}

// What follows is ExportMetricsServiceRequest in OTLP's JSON: names in lowerCamelCase,
// integers of 64 bits as strings, enumerations as numbers
// (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding").

const cumulative = 2 // AGGREGATION_TEMPORALITY_CUMULATIVE

type request struct {
	ResourceMetrics []resourceMetrics `json:"resourceMetrics"`
}

type resourceMetrics struct {
	Resource     resource       `json:"resource"`
	ScopeMetrics []scopeMetrics `json:"scopeMetrics"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeMetrics struct {
	Scope   scope    `json:"scope"`
	Metrics []metric `json:"metrics"`
}

type scope struct {
	Name string `json:"name"`
}

// metric has one of its last four.
type metric struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Unit        string `json:"unit"`
	Sum         *data  `json:"sum,omitempty"`
	Gauge       *data  `json:"gauge,omitempty"`
	Summary     *data  `json:"summary,omitempty"`
	Histogram   *data  `json:"histogram,omitempty"`
}

type data struct {
	Points      []dataPoint `json:"dataPoints"`
	Temporality int         `json:"aggregationTemporality,omitempty"`
	Monotonic   bool        `json:"isMonotonic,omitempty"`
}

type dataPoint struct {
	Attributes []attribute `json:"attributes,omitempty"`
	Start      uint64      `json:"startTimeUnixNano,string,omitempty"`
	Time       uint64      `json:"timeUnixNano,string"`
	Int        *int64      `json:"asInt,string,omitempty"`
	Double     *float64    `json:"asDouble,omitempty"`
	Count      *uint64     `json:"count,string,omitempty"`
	Sum        *float64    `json:"sum,omitempty"`
	Quantiles  []Quantile  `json:"quantileValues,omitempty"`
	Bounds     []float64   `json:"explicitBounds,omitempty"`
	Buckets    []string    `json:"bucketCounts,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	String string `json:"stringValue"`
}

func newAttribute(key, text string) attribute { return attribute{key, value{text}} }
