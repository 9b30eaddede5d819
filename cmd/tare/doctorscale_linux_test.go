package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/doctor"
)

// TestDoctorScales has the doctor's CPU add up to what the kernel counted, the runtime's
// system monitor included, as that of `tare cost` does.
func TestDoctorScales(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	s := httptest.NewServer(mux)
	defer s.Close()
	var stopped atomic.Bool
	defer stopped.Store(true)
	go func() {
		for !stopped.Load() { // something for the profile to see
		}
	}()
	c := &doctorCmd{What: s.URL, For: 2 * time.Second}
	p, err := c.patient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if monitor, err := bpf.SystemMonitor(os.Getpid()); err != nil || monitor == 0 {
		t.Skipf("SKIPPED: the kernel does not tell what the system monitor used: %v", err)
	}
	g := &gathering{Evidence: &doctor.Evidence{Reasons: p.reasons}}
	if err := c.profile(t.Context(), cli.NewProgress(&cli.Terminal{Err: t.Output()}), p, g); err != nil {
		t.Fatal(err)
	}
	for _, stack := range g.CPU {
		if stack.Frames[0].Func == cost.SystemMonitor {
			return
		}
	}
	t.Error("the doctor's profile has no stack of the system monitor, which the kernel counted")
}
