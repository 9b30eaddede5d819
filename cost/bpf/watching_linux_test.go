//go:build linux && amd64

package bpf_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/internal/toggle"
)

// BenchmarkWatching says what sampling costs a service: CPU per request while the
// clock runs against CPU per request while it does not, in pairs of windows of a
// quarter of a second, in random order, within one process. hz=0 is the same with
// the clock left off in both: what the measurement makes of nothing.
//
//	go test ./cost/bpf -run - -bench Watching -benchtime 60x
func BenchmarkWatching(b *testing.B) {
	exe := build(b)
	for _, hz := range []int{0, 19, 99, 499, 999} {
		b.Run(fmt.Sprintf("hz=%d", hz), func(b *testing.B) {
			service := serve(b, exe, &syscall.SysProcAttr{})
			s := begin(b, bpf.Options{PID: service.pid, Hz: max(1, hz)})
			toggle.Compare(b, func(on bool) float64 {
				if err := s.Toggle(on && hz > 0); err != nil {
					b.Fatal(err)
				}
				return window(b, service)
			})
			p, err := s.Stop()
			if err != nil {
				b.Fatal(err)
			}
			if p.Seen > 0 {
				b.ReportMetric(float64(p.Watching.Nanoseconds())/float64(p.Seen), "ns/stack")
			}
		})
	}
}

// window returns the nanoseconds of CPU that a request cost a service within a
// quarter of a second.
func window(b *testing.B, service *running) float64 {
	b.Helper()
	read := func() (time.Duration, int64) {
		used, err := bpf.CPU(service.pid)
		if err != nil {
			b.Fatal(err)
		}
		return used, service.answered.Load()
	}
	cpu, requests := read()
	time.Sleep(250 * time.Millisecond)
	used, answered := read()
	return float64(used-cpu) / float64(max(1, answered-requests))
}
