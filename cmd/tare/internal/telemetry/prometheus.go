package telemetry

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
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
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
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
		sample := name
		if m.Kind == Counter {
			sample += "_total"
			if !open {
				name = sample // OpenMetrics has the family's name without the ending
			}
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, m.Help, m.Kind)
		for _, p := range m.Points {
			if p.Times != nil {
				p.writeTimes(&b, sample)
				continue
			}
			fmt.Fprintf(&b, "%s%s %s", sample, labels(p.Labels), decimal(p.Value))
			if e := p.Exemplar; e != nil && open && m.Kind == Counter {
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

// writeTimes writes a distribution.
func (p *Point) writeTimes(b *bytes.Buffer, name string) {
	with := func(label, value string) string {
		return labels(append(p.Labels[:len(p.Labels):len(p.Labels)], Label{label, value}))
	}
	for _, q := range p.Times.Quantiles {
		fmt.Fprintf(b, "%s%s %s\n", name, with("quantile", decimal(q.Quantile)), decimal(q.Value))
	}
	if len(p.Times.Buckets) > 0 {
		var sum uint64
		for _, k := range p.Times.Buckets {
			sum += k.Count
			fmt.Fprintf(b, "%s_bucket%s %d\n", name, with("le", decimal(k.Most)), sum)
		}
		fmt.Fprintf(b, "%s_bucket%s %d\n", name, with("le", "+Inf"), p.Times.Count)
	}
	fmt.Fprintf(b, "%s_sum%s %s\n%[1]s_count%[2]s %[4]d\n", name, labels(p.Labels), decimal(p.Times.Sum), p.Times.Count)
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
