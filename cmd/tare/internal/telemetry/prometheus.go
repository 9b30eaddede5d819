package telemetry

import (
	"bytes"
	"fmt"
	"iter"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// server answers scrapes at /metrics with the latest figures. Nil answers none.
type server struct {
	latest *atomic.Pointer[Figures]
	http   http.Server
	addr   net.Addr
}

// listen begins to answer at an address such as ":9464"; port 0 is any free one.
func listen(addr string, other http.Handler, latest *atomic.Pointer[Figures]) (*server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &server{latest: latest, addr: l.Addr()}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s)
	if other != nil {
		mux.Handle("/", other)
	}
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 5 * time.Minute}
	go s.http.Serve(l)
	return s, nil
}

// ServeHTTP writes the latest figures, in OpenMetrics's form to who asks for that: it has
// exemplars.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	open := strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text")
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if open {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	if f := s.latest.Load(); f != nil {
		w.Write(f.text(open))
	} else if open {
		w.Write([]byte(endOfFile))
	}
}

func (s *server) close() error {
	if s == nil {
		return nil
	}
	return s.http.Close()
}

const endOfFile = "# EOF\n"

// text is the figures in the text format of Prometheus, version 0.0.4, or in that of
// OpenMetrics, version 1.0.0.
func (f *Figures) text(open bool) []byte {
	var b bytes.Buffer
	for _, m := range f.Families {
		if len(m.Points) == 0 {
			continue
		}
		name := m.name()
		if m.Kind == Counter && !open {
			name += total // OpenMetrics has the family's name without the ending
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, m.Help, m.Kind)
		for s := range m.samples() {
			fmt.Fprintf(&b, "%s%s %s", s.name, labels(s.labels), decimal(s.value))
			if e := s.exemplar; e != nil && open && m.Kind == Counter {
				fmt.Fprintf(&b, " # %s %s %s", labels(e.Labels), decimal(e.Value), strconv.FormatFloat(float64(e.At.UnixMilli())/1e3, 'f', 3, 64))
			}
			b.WriteByte('\n')
		}
	}
	if open {
		b.WriteString(endOfFile)
	}
	return b.Bytes()
}

// name is the family's in Prometheus, without the ending of a counter.
func (m *Family) name() string {
	name := "tare_" + strings.ReplaceAll(m.Name, ".", "_")
	switch m.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	return name
}

// total ends the name of a counter.
const total = "_total"

// sample is a value as Prometheus has it.
type sample struct {
	name     string
	labels   []Label
	value    float64
	exemplar *Exemplar
}

// samples yields what the family comes to in Prometheus, point by point.
func (m *Family) samples() iter.Seq[sample] {
	name := m.name()
	if m.Kind == Counter {
		name += total
	}
	return func(yield func(sample) bool) {
		for k := range m.Points {
			p := &m.Points[k]
			all := []sample{{name, p.Labels, p.Value, p.Exemplar}}
			if p.Times != nil {
				all = p.times(name)
			}
			for _, s := range all {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// times are the samples of a distribution.
func (p *Point) times(name string) (all []sample) {
	add := func(ending string, value float64, more ...Label) {
		all = append(all, sample{name: name + ending, labels: slices.Concat(p.Labels, more), value: value})
	}
	for _, q := range p.Times.Quantiles {
		add("", q.Value, Label{"quantile", decimal(q.Quantile)})
	}
	if len(p.Times.Buckets) > 0 {
		var sum uint64
		for _, k := range p.Times.Buckets {
			sum += k.Count
			add("_bucket", float64(sum), Label{"le", decimal(k.Most)})
		}
		add("_bucket", float64(p.Times.Count), Label{"le", "+Inf"})
	}
	add("_sum", p.Times.Sum)
	add("_count", float64(p.Times.Count))
	return all
}

// labels writes labels; nothing for none.
func labels(all []Label) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	for i, l := range all {
		b.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(&b, "%s=\"%s\"", l.Name, escaped.Replace(strings.ToValidUTF8(l.Value, "\ufffd")))
	}
	return b.String() + "}"
}

// escaped has a label's value be as both formats want it.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
