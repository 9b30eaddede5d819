// Package metrics counts and times requests for Prometheus.
//
// A [Metrics] is a middleware and the page that Prometheus scrapes, in its text format.
// Names are those of OpenTelemetry's conventions for HTTP servers:
//
//   - http_server_request_duration_seconds, a classic histogram or a native one, and
//     http_server_response_body_bytes_total, by http_request_method, http_route and
//     http_response_status_code
//   - http_server_active_requests
//   - the go_… metrics of package runtime/metrics, under the names that client_golang
//     gives them: memory, garbage collection, goroutines, the scheduler's latencies
//   - Options.Values, such as the counts of the other layers
//
// With Options.Service all of them have the label service_name, so that requests and the
// runtime below them can be shown side by side. Package remotewrite sends them where
// nobody comes to scrape.
//
// With Options.Trace a bucket keeps the trace of the last request that it counted, as an
// exemplar: it leads from a slow bucket to a span and a log line. Only the format
// OpenMetrics has exemplars, which Prometheus asks for by itself. There the runtime's histograms have
// no _count, as Go knows no sum of them: their bucket of le="+Inf" says the same.
//
// A client cannot make a series. The route is the pattern that the router matched, never
// the path. It is empty if nothing matched. Methods that RFC 9110 and RFC 5789 do not
// define count as _OTHER, and so do routes beyond Options.Routes. A request whose client left
// before the answer began counts with the status 499.
//
// The router writes the pattern into its request. A middleware between the two that
// copies the request hides it. In a chain those of this repository do not copy it, or
// hand the pattern back. Elsewhere requestid, clientaddr and jwt hide it, and so does a
// whole chain inside of metrics on net/http: put metrics into the chain.
//
// With Options.Native each duration is also counted in a native histogram, whose buckets are 9 %
// wide. Only Prometheus' format of protocol buffers has those, beside the classic buckets.
// Prometheus asks for it where they are enabled. It then drops the classic ones, unless
// always_scrape_classic_histograms is set.
//
// Place: behind recovery, outside of all that refuses requests.
//
// Cost: it allocates nothing in a chain once a series is there, but an exemplar for each
// request that is traced; elsewhere it makes a recorder of the answer. The runtime is read
// at each scrape, not at each request. BenchmarkRequest says what a request takes.
package metrics

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/outcome"
)

// Options of the metrics. The zero value has the buckets of OpenTelemetry's conventions.
type Options struct {
	// Buckets are the upper bounds of the histogram, in seconds, ascending. Nil: 5 ms to
	// 10 s in 14 steps.
	Buckets []float64
	// Routes is how many patterns have series of their own; the others share _OTHER.
	// 0: 1,000.
	Routes int
	// Route returns the pattern of a request after it was answered. Nil: its Pattern. A
	// request for which it panics is counted without one, and the panic passes on.
	Route func(*http.Request) string
	// Native has durations counted in native histograms too: 2.4 kB more a series.
	Native bool
	// Service is the value of the label service_name of all metrics. Empty: none has it.
	Service string
	// Trace returns the identifier of a request's trace, after it was answered, at most
	// 64 bytes of it; empty if it has none. Nil: no exemplars. tracing.ID of
	// serve/tracing is one; tracing must stand outside, unless both are in a chain.
	Trace func(*http.Request) string
	// Values are further metrics, read at each scrape, each under a name of its own.
	Values []Value
	// NoRuntime excludes the metrics of Go's runtime.
	NoRuntime bool
}

// Value is one number to expose.
type Value struct {
	Name, Help string
	Counter    bool // it only grows; its name ends in _total
	Read       func() float64
}

// Metrics counts requests. It is safe for concurrent use. As a handler it answers with the
// metrics; mount it where strangers cannot ask.
type Metrics struct {
	o      Options
	bounds []time.Duration // of Buckets
	routes atomic.Pointer[map[string]*route]
	mu     sync.Mutex // held to add a route or a series
	_      [64]byte   // what each request writes is on no cache line with what others read
	begun  atomic.Int64
	_      [56]byte
}

// route has the series of one pattern.
type route struct {
	path   string // the pattern without its method
	series atomic.Pointer[map[answer]*series]
}

// answer is what tells the series of a route apart.
type answer struct{ method, status uint16 }

// series is one histogram.
type series struct {
	buckets   []bucket                   // the last one beyond all bounds
	native    []atomic.Uint64            // by nativeCell; none without Options.Native
	exemplars []atomic.Pointer[exemplar] // of each bucket the last; none without Options.Trace
}

// bucket has all that a request adds to, on one cache line, and on none with what others only read:
// processors take it from one another at each request.
type bucket struct {
	count atomic.Uint64
	nanos atomic.Int64
	bytes atomic.Int64
	_     [8]byte // 32 bytes never lie on two lines
}

// exemplar is a request that a bucket counted.
type exemplar struct {
	trace   string
	seconds float64 // that it took
	at      time.Time
}

const (
	longestTrace  = 64 // bytes; OpenMetrics has room for 128, names included
	other         = "_OTHER"
	defaultRoutes = 1000
)

var defaultBuckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

// New returns empty metrics, or an error that says which option is wrong.
func New(o Options) (*Metrics, error) {
	if o.Buckets == nil {
		o.Buckets = defaultBuckets
	}
	if o.Routes == 0 {
		o.Routes = defaultRoutes
	}
	if o.Routes < 0 {
		return nil, fmt.Errorf("metrics: Options.Routes is negative: %d", o.Routes)
	}
	m := &Metrics{o: o}
	last := 0.0
	for _, b := range o.Buckets {
		if !(b > last) || b > math.MaxInt64/1e9 {
			return nil, fmt.Errorf("metrics: Options.Buckets has %v after %v: bounds are positive, ascending and finite", b, last)
		}
		last = b
		m.bounds = append(m.bounds, time.Duration(b*1e9))
	}
	m.routes.Store(&map[string]*route{})
	return m, m.checkValues()
}

// checkValues returns what is wrong with Options.Values. Scrapers refuse a page with a name twice.
func (m *Metrics) checkValues() error {
	own, taken := &page{}, map[string]bool{}
	m.addRequests(own)
	if !m.o.NoRuntime {
		addRuntime(own)
	}
	for _, f := range own.families {
		taken[f.name] = true
	}
	for _, v := range m.o.Values {
		if err := v.check(); err != nil {
			return err
		}
		if taken[v.Name] {
			return fmt.Errorf("metrics: Options.Values has %s, which is there already: give it another name", v.Name)
		}
		taken[v.Name] = true
	}
	return nil
}

func (v *Value) check() error {
	if !validName(v.Name) {
		return fmt.Errorf("metrics: Options.Values has the name %q: only letters, digits, _ and : make a name", v.Name)
	}
	if v.Read == nil {
		return fmt.Errorf("metrics: %s of Options.Values has no Read", v.Name)
	}
	if v.Counter != strings.HasSuffix(v.Name, "_total") {
		return fmt.Errorf("metrics: %s of Options.Values: names of counters end in _total, and no others", v.Name)
	}
	return nil
}

func validName(name string) bool {
	for i, c := range []byte(name) {
		digit := '0' <= c && c <= '9'
		if !('a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == ':' || digit && i > 0) {
			return false
		}
	}
	return name != ""
}

// Middleware counts what reaches next. In a chain its layer is called metrics.
func (m *Metrics) Middleware(next http.Handler) http.Handler { return &handler{m, next} }

type handler struct {
	m    *Metrics
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "metrics", Rules: []chain.Rule{
		chain.Once("requests would be counted twice"),
		chain.Before("auth", "requests that it refuses would not be counted"),
		chain.Before("limit", "requests that it refuses would not be counted"),
		chain.Before("cache", "requests that it answers would not be counted"),
		chain.Before("timeout", "the answer of a request that timed out would not be seen"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := h.m
	m.begun.Add(1)
	w, rec := chain.Record(w)
	rec.Begun()
	done := false
	defer func() { // also if the handler panics
		if m.o.Route != nil {
			m.countRouted(r, rec, done)
			return
		}
		m.count(r.Pattern, r, rec, done)
	}()
	h.next.ServeHTTP(w, r)
	done = true
}

// countRouted counts a request by what Options.Route says of it, also if that panics: it
// would be active for ever.
func (m *Metrics) countRouted(r *http.Request, rec *chain.Recorder, done bool) {
	route, said := "", false
	defer func() { m.count(route, r, rec, done && said) }()
	route = m.o.Route(r)
	said = true
}

// count counts a request that was answered. The handler is done, or has panicked.
func (m *Metrics) count(route string, r *http.Request, rec *chain.Recorder, done bool) {
	took := time.Since(rec.Begun())
	s := m.find(route, answer{methodOf(r.Method), uint16(outcome.Status(r, rec, !done))})
	bucket := s.add(m.bounds, took, outcome.Bytes(r, rec))
	if m.o.Trace != nil {
		s.remember(bucket, m.o.Trace(r), took)
	}
}

var methods = [...]string{other, "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// methodOf returns the method's index in methods.
func methodOf(method string) uint16 {
	for i, m := range methods[1:] {
		if m == method {
			return uint16(i + 1)
		}
	}
	return 0
}

// find returns the series of an answer.
func (m *Metrics) find(pattern string, a answer) *series {
	if rt := (*m.routes.Load())[pattern]; rt != nil {
		if s := (*rt.series.Load())[a]; s != nil {
			return s
		}
	}
	return m.findSlowly(pattern, a)
}

// findSlowly adds the series if it is not there. Readers go on with the maps before.
func (m *Metrics) findSlowly(pattern string, a answer) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	routes := *m.routes.Load()
	rt := routes[pattern]
	if rt == nil && len(routes) >= m.o.Routes {
		pattern, rt = other, routes[other]
	}
	if rt == nil {
		rt = &route{path: pathOf(pattern)}
		rt.series.Store(&map[answer]*series{})
		routes = maps.Clone(routes)
		routes[strings.Clone(pattern)] = rt
		m.routes.Store(&routes)
	}
	all := *rt.series.Load()
	s := all[a]
	if s == nil {
		s = &series{buckets: make([]bucket, len(m.bounds)+1)}
		if m.o.Native {
			s.native = make([]atomic.Uint64, nativeCells)
		}
		if m.o.Trace != nil {
			s.exemplars = make([]atomic.Pointer[exemplar], len(m.bounds)+1)
		}
		all = maps.Clone(all)
		all[a] = s
		rt.series.Store(&all)
	}
	return s
}

// pathOf returns a pattern without its method, which is a label of its own.
func pathOf(pattern string) string {
	if method, path, ok := strings.Cut(pattern, " "); ok && !strings.Contains(method, "/") {
		pattern = strings.TrimLeft(path, " \t")
	}
	return strings.Clone(pattern)
}

// add counts a request and returns its bucket.
func (s *series) add(bounds []time.Duration, took time.Duration, bytes int64) int {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	b := &s.buckets[i]
	b.count.Add(1)
	if s.native != nil {
		s.native[nativeCell(took)].Add(1)
	}
	b.nanos.Add(int64(took))
	if bytes > 0 {
		b.bytes.Add(bytes)
	}
	return i
}

// remember keeps a request as its bucket's exemplar, if it was traced.
func (s *series) remember(bucket int, trace string, took time.Duration) {
	if trace != "" {
		s.exemplars[bucket].Store(&exemplar{strings.Clone(trace[:min(len(trace), longestTrace)]), took.Seconds(), time.Now()})
	}
}

// ServeHTTP answers with the metrics, in Prometheus' text format. Clients that accept more get
// native histograms in protocol buffers or exemplars in OpenMetrics, if there are any.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	page := m.page()
	var body []byte
	switch {
	case m.o.Native && accepts(r.Header, protobuf):
		h.Set("Content-Type", protobufType)
		body = page.proto()
	case m.o.Trace != nil && accepts(r.Header, openMetrics):
		h.Set("Content-Type", openMetrics+"; version=1.0.0; charset=utf-8")
		body = page.text(true)
	default:
		h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		body = page.text(false)
	}
	_, _ = w.Write(body) // fails when the client has gone
}

// WriteTo writes the metrics in Prometheus' text format.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m.page().text(false))
	return int64(n), err
}

// Samples returns all numbers that the page has, for who sends them elsewhere.
func (m *Metrics) Samples() []Sample { return m.page().samples() }

// page reads all metrics.
func (m *Metrics) page() *page {
	p := &page{}
	if m.o.Service != "" {
		p.constant = []Label{{"service_name", m.o.Service}}
	}
	m.addRequests(p)
	for _, v := range m.o.Values {
		kind := gauge
		if v.Counter {
			kind = counter
		}
		p.family(v.Name, kind, v.Help).add("", nil, v.Read())
	}
	if !m.o.NoRuntime {
		addRuntime(p)
	}
	return p
}

// addRequests adds what the middleware has counted.
func (m *Metrics) addRequests(p *page) {
	found := m.merge()
	active := m.begun.Load() // read last: what ends meanwhile still counts, and never fewer than none
	for _, r := range found {
		for _, n := range r.counts {
			active -= int64(n)
		}
	}
	p.family("http_server_active_requests", gauge, "Requests being served.").add("", nil, float64(active))
	keys := slices.SortedFunc(maps.Keys(found), func(a, b key) int {
		return cmp.Or(cmp.Compare(methods[a.method], methods[b.method]), cmp.Compare(a.status, b.status), cmp.Compare(a.path, b.path))
	})
	duration := p.family("http_server_request_duration_seconds", histogram, "Time from the request to the end of its handler.")
	for _, k := range keys {
		duration.histogram(k.labels(), m.o.Buckets, found[k])
	}
	bytes := p.family("http_server_response_body_bytes_total", counter, "Bytes of bodies written.")
	for _, k := range keys {
		bytes.add("", k.labels(), float64(found[k].bytes))
	}
}

// key tells the series of the page apart.
type key struct {
	path string
	answer
}

func (k key) labels() []Label {
	return []Label{
		{"http_request_method", methods[k.method]},
		{"http_response_status_code", strconv.Itoa(int(k.status))},
		{"http_route", k.path},
	}
}

// reading is what a series had counted at one time.
type reading struct {
	counts    []uint64
	native    []uint64    // by nativeCell; nil: not counted
	exemplars []*exemplar // as many as counts, or none
	sum       float64     // NaN: not known
	bytes     int64
}

// merge reads all series. Patterns that differ in their method alone have one route.
func (m *Metrics) merge() map[key]*reading {
	found := map[key]*reading{}
	for _, rt := range *m.routes.Load() {
		for a, s := range *rt.series.Load() {
			sum := found[key{rt.path, a}]
			if sum == nil {
				sum = &reading{counts: make([]uint64, len(m.bounds)+1), exemplars: make([]*exemplar, len(s.exemplars))}
				if m.o.Native {
					sum.native = make([]uint64, nativeCells)
				}
				found[key{rt.path, a}] = sum
			}
			sum.read(s)
		}
	}
	return found
}

// read adds what a series has counted.
func (r *reading) read(s *series) {
	var nanos int64
	for i := range s.buckets {
		b := &s.buckets[i]
		r.counts[i] += b.count.Load()
		nanos += b.nanos.Load()
		r.bytes += b.bytes.Load()
	}
	for i := range s.native {
		r.native[i] += s.native[i].Load()
	}
	r.sum += float64(nanos) / 1e9
	for i := range s.exemplars {
		if e := s.exemplars[i].Load(); e != nil && (r.exemplars[i] == nil || e.at.After(r.exemplars[i].at)) {
			r.exemplars[i] = e
		}
	}
}
