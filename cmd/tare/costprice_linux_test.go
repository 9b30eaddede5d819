//go:build linux && amd64

package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/internal/toggle"
)

// BenchmarkPrice says what recording takes of a service that is kept busy: CPU per
// request while it lasts, its profile's writing included, against CPU per request
// without, in pairs of windows of four seconds, in random order, within one process.
//
//	go test ./cmd/tare -run - -bench Price -benchtime 12x
func BenchmarkPrice(b *testing.B) {
	for _, way := range []struct {
		name  string
		paths []string
	}{
		{"nothing", nil},
		{"profile", []string{"/debug/pprof/profile?seconds=4"}},
		{"trace", []string{"/debug/pprof/trace?seconds=4"}},
		{"both", []string{"/debug/pprof/profile?seconds=4", "/debug/pprof/trace?seconds=4"}},
	} {
		b.Run(way.name, func(b *testing.B) {
			url, process := startTraced(b)
			pid, err := strconv.Atoi(process)
			if err != nil {
				b.Fatal(err)
			}
			answered := keepBusy(b, url, 4)
			toggle.Compare(b, func(on bool) float64 {
				var paths []string
				if on {
					paths = way.paths
				}
				before, n := processCPU(b, pid), answered.Load()
				recorded(b, url, paths)
				return float64(processCPU(b, pid)-before) / float64(answered.Load()-n)
			})
		})
	}
}

// recorded waits until all is recorded, four seconds at least.
func recorded(b *testing.B, url string, paths []string) {
	b.Helper()
	var all sync.WaitGroup
	for _, path := range paths {
		all.Go(func() {
			if err := discard(http.DefaultClient, url+path); err != nil {
				b.Error(err)
			}
		})
	}
	time.Sleep(4 * time.Second)
	all.Wait()
}

// keepBusy sends requests by so many clients until the benchmark ends, and counts
// the answers.
func keepBusy(b *testing.B, url string, clients int) *atomic.Int64 {
	b.Helper()
	var answered atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	for range clients {
		all.Go(func() {
			c := &http.Client{Transport: transport, Timeout: 10 * time.Second}
			for !over.Load() {
				if err := discard(c, url); err != nil {
					b.Error(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	b.Cleanup(func() {
		over.Store(true)
		all.Wait()
		transport.CloseIdleConnections()
	})
	return &answered
}

func discard(c *http.Client, url string) error {
	res, err := c.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, res.Status)
	}
	return err
}

func processCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	used, err := bpf.CPU(pid)
	if err != nil {
		b.Fatal(err)
	}
	return used
}
