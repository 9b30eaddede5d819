//go:build linux && amd64

package probe_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/internal/toggle"
	"github.com/tarehq/tare/stats"
)

// BenchmarkWatching says what watching costs a process, and what the price of a hit,
// which tare cost --max-overhead goes by, makes of it: CPU per request while probes are
// attached against CPU per request while they are not, in pairs of windows of a second, in
// random order, within one process.
//
//	go test ./cost/bpf/probe -run - -bench Watching -benchtime 40x
func BenchmarkWatching(b *testing.B) {
	for _, path := range []string{"/", "/fast"} {
		b.Run("path="+path, func(b *testing.B) { watching(b, path) })
	}
}

func watching(b *testing.B, path string) {
	s := start(b, build(b))
	p := open(b, s.pid)
	s.load(b, 3, path)
	w := prepare(b, p, nil)
	price, err := probe.Calibrate(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var told []float64
	var seen probe.Measurement // until the window before
	toggle.Compare(b, func(on bool) float64 {
		if !on {
			return alone(b, s, p)
		}
		m, err := w.Run(b.Context(), probe.Options{For: window, Window: window})
		if err != nil {
			b.Fatal(err)
		}
		requests, took := m.Requests-seen.Requests, (m.Hits-seen.Hits)*float64(price.Hit)
		told = append(told, 100*took/(float64(m.CPU)-took))
		seen = *m
		return float64(m.CPU) / requests
	})
	b.ReportMetric(stats.HodgesLehmann(told), "%told")
	b.ReportMetric(float64(price.Hit.Nanoseconds()), "ns/hit")
}

const window = time.Second

// alone returns the nanoseconds of CPU that a request costs a process that nobody
// watches, within a window.
func alone(b *testing.B, s *server, p *probe.Target) float64 {
	b.Helper()
	read := func() (time.Duration, float64) {
		calls := s.truth(b)["spin"].Calls
		cpu, err := p.CPU()
		if err != nil {
			b.Fatal(err)
		}
		return cpu, calls
	}
	cpu, calls := read()
	time.Sleep(window)
	used, called := read()
	return float64(used-cpu) / (called - calls)
}
