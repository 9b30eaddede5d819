package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/load"
)

const (
	pushPeriod  = 5 * time.Second
	pushTimeout = 5 * time.Second
	maxReply    = 64 << 10 // bytes that are read of an answer
)

// pusher sends the latest figures to an OTLP receiver, by HTTP and as JSON.
//
// Note: the official exporter does the same in Protobuf, and requires gRPC, Protobuf and
// OpenTelemetry's SDK.
type pusher struct {
	latest   *atomic.Pointer[Figures]
	url      *url.URL
	header   http.Header
	resource resource
	scope    string
	failed   atomic.Pointer[error] // why the last sending did; nil: it did not
	client   http.Client
	stop     chan struct{}
	done     chan error // how the last sending ended
}

// newPusher is one that sends nothing yet.
func newPusher(raw, scope string, latest *atomic.Pointer[Figures]) (*pusher, error) {
	u, err := url.Parse(load.AbsoluteURL(raw))
	switch {
	case err != nil: // which would show a password
		return nil, errors.New("the URL is malformed")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is not supported: want http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/metrics"
	}
	header, err := Headers("OTEL_EXPORTER_OTLP_HEADERS")
	if err != nil {
		return nil, err
	}
	header.Set("Content-Type", "application/json")
	host, _ := os.Hostname() // without a name, the process tells instances apart
	return &pusher{
		latest: latest, url: u, header: header, scope: scope,
		resource: resource{[]attribute{
			newAttribute("service.name", "tare"),
			newAttribute("service.instance.id", fmt.Sprintf("%s:%d", host, os.Getpid())),
		}},
		client: http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}, Timeout: pushTimeout},
		stop:   make(chan struct{}), done: make(chan error, 1),
	}, nil
}

// Headers reads the header fields of requests from an environment variable, written as
// OpenTelemetry's exporters want theirs, such as "api-key=secret,x=a%20b".
func Headers(variable string) (http.Header, error) {
	h := http.Header{"User-Agent": {"tare"}}
	for entry := range strings.SplitSeq(os.Getenv(variable), ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, value, ok := strings.Cut(entry, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, fmt.Errorf("%s is not name=value,…, the values percent-encoded", variable)
		}
		h.Set(strings.TrimSpace(name), value)
	}
	return h, nil
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
	defer p.client.CloseIdleConnections()
	return <-p.done
}

// send sends figures; nil is a request without any.
func (p *pusher) send(ctx context.Context, f *Figures) error {
	body, err := json.Marshal(request{p.resourceMetrics(f)})
	if err != nil {
		return fmt.Errorf("encoding metrics: %w", err)
	}
	doing := "sending metrics to " + load.Shown(p.url.String())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New(doing + ": the URL is malformed")
	}
	req.Header = p.header.Clone()
	resp, err := p.client.Do(req)
	if uerr, ok := errors.AsType[*url.Error](err); ok {
		err = uerr.Err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return fmt.Errorf("%s: reading the answer: %w", doing, err)
	}
	if err := judgeReply(resp, text); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
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
