package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bounds are the upper ends of the histogram's buckets; one more counts what
// took longer.
var bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// metrics count and time requests by method and status. Safe for concurrent
// use.
type metrics struct {
	mu     sync.RWMutex
	series map[labels]*series
}

type labels struct {
	method string
	status int
}

// series is a histogram of durations.
type series struct {
	buckets [len(bounds) + 1]atomic.Uint64
	sum     atomic.Int64 // ns
}

func newMetrics() *metrics { return &metrics{series: map[labels]*series{}} }

// observe records one request.
func (m *metrics) observe(method string, status int, d time.Duration) {
	key := labels{method, status}
	m.mu.RLock()
	s := m.series[key]
	m.mu.RUnlock()
	if s == nil {
		s = m.add(key)
	}
	i, _ := slices.BinarySearch(bounds[:], d)
	s.buckets[i].Add(1)
	s.sum.Add(int64(d))
}

func (m *metrics) add(key labels) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[key]
	if s == nil {
		s = new(series)
		m.series[key] = s
	}
	return s
}

// ServeHTTP writes the metrics in Prometheus's text format.
func (m *metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.RLock()
	all := maps.Clone(m.series)
	m.mu.RUnlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	const name = "http_request_duration_seconds"
	fmt.Fprintf(w, "# TYPE %s histogram\n", name)
	keys := slices.SortedFunc(maps.Keys(all), func(a, b labels) int {
		return cmp.Or(strings.Compare(a.method, b.method), cmp.Compare(a.status, b.status))
	})
	for _, key := range keys {
		label := fmt.Sprintf(`method=%q,status="%d"`, key.method, key.status)
		s, n := all[key], uint64(0)
		for i, le := range bounds {
			n += s.buckets[i].Load()
			fmt.Fprintf(w, "%s_bucket{%s,le=\"%v\"} %d\n", name, label, le.Seconds(), n)
		}
		n += s.buckets[len(bounds)].Load()
		fmt.Fprintf(w, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, label, n)
		fmt.Fprintf(w, "%s_sum{%s} %v\n", name, label, time.Duration(s.sum.Load()).Seconds())
		fmt.Fprintf(w, "%s_count{%s} %d\n", name, label, n)
	}
}
