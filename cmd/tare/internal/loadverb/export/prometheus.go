package export

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// server answers scrapes at /metrics with the latest figures. Nil answers none.
type server struct {
	latest *atomic.Pointer[figures]
	http   http.Server
	addr   net.Addr
}

// listen begins to answer at an address such as ":9464"; port 0 is any free one.
func listen(addr string, latest *atomic.Pointer[figures]) (*server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &server{latest: latest, addr: l.Addr()}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s)
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go s.http.Serve(l)
	return s, nil
}

// url is where to scrape.
func (s *server) url() string { return "http://" + s.addr.String() + "/metrics" }

// ServeHTTP writes the latest figures.
func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if f := s.latest.Load(); f != nil {
		w.Write(f.text())
	}
}

func (s *server) close() error {
	if s == nil {
		return nil
	}
	return s.http.Close()
}

// text is the figures in the text format of Prometheus, version 0.0.4.
func (f *figures) text() []byte {
	var b bytes.Buffer
	for _, m := range f.families {
		name := "tare_load_" + m.name
		if m.unit == "s" {
			name += "_seconds"
		}
		if m.kind == counter {
			name += "_total"
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, m.help, m.kind)
		for _, p := range m.points {
			labels := ""
			if m.label != "" {
				labels = fmt.Sprintf("{%s=%q}", m.label, p.label)
			}
			fmt.Fprintf(&b, "%s%s %s\n", name, labels, decimal(p.value))
		}
		if m.kind != summary {
			continue
		}
		for _, q := range m.times.quantiles {
			fmt.Fprintf(&b, "%s{quantile=\"%s\"} %s\n", name, decimal(q.Quantile), decimal(q.Value))
		}
		fmt.Fprintf(&b, "%s_sum %s\n%[1]s_count %[3]d\n", name, decimal(m.times.sum), m.times.count)
	}
	return b.Bytes()
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
