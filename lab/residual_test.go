package lab_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
)

// burnFor is how long the orphan of an arm burns.
const burnFor = 3 * time.Second

// orphan starts, by a process that ends at once, one that burns outside the arm's tree.
func orphan() {
	for _, next := range []string{"burns", "forks"} {
		if os.Getenv("LAB_TEST_ARM") != next {
			continue
		}
		for begun := time.Now(); next == "burns" && time.Since(begun) < burnFor; {
		}
		if next == "forks" {
			respawn("burns").Start()
		}
		os.Exit(0)
	}
	respawn("forks").Run()
}

func respawn(mode string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "LAB_TEST_ARM="+mode)
	detach(cmd)
	return cmd
}

// What works for an arm outside its process tree is no part of its CPU, and is seen in what
// is left of the machine's.
func TestOrphan(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: burns a CPU for three seconds")
	}
	s := small(t, "orphan", "ok")
	s.Twin, s.Workloads, s.Primary.Workload = false, s.Workloads[1:], "open"
	s.Trial.Measure = time.Second
	s.Trial.Slice = 100 * time.Millisecond
	tr, err := lab.OneTrial(t.Context(), options(t, s), 200)
	if err != nil {
		t.Fatal(err)
	}
	rest, told := tr.Metrics["residual_cpu"]
	r := tr.Readings
	if !told || r == nil {
		t.Skip("SKIPPED: this system does not tell the CPU time of the machine")
	}
	if burnt, least := time.Duration(rest*float64(tr.Requests)), 150*time.Millisecond; burnt < least {
		t.Errorf("outside of the arm's tree %v of CPU were used in a second, want at least %v", burnt, least)
	}
	if own := r.After.Arm - r.Before.Arm; own > 700*time.Millisecond {
		t.Errorf("the arm used %v of CPU in a second of 200 requests: the orphan's is in it", own)
	}
	used := r.After.Capacity - r.Before.Capacity - (r.After.Idle - r.Before.Idle) - (r.After.Stolen - r.Before.Stolen)
	known := (r.After.Arm - r.Before.Arm) + (r.After.Tare - r.Before.Tare)
	if got := time.Duration(rest * float64(tr.Requests)); (got - (used - known)).Abs() > time.Microsecond {
		t.Errorf("got %v left, want %v less %v", got, used, known)
	}
}

// owed are requests whose work, a millisecond each, an arm puts off until nobody is connected.
var owed, connected atomic.Int64

// payLater is told of the arm's connections, and does what is owed when the last has gone.
func payLater(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		connected.Add(1)
	case http.StateClosed:
		if connected.Add(-1) > 0 {
			return
		}
		for left := owed.Swap(0); left > 0; left-- {
			for begun := time.Now(); time.Since(begun) < time.Millisecond; {
			}
		}
	}
}

// What an arm puts off until the load is over is no part of its CPU per request, and is seen
// beside it.
func TestDeferred(t *testing.T) {
	got := map[string]float64{}
	for _, mode := range []string{"ok", "defers"} {
		s := small(t, mode, "ok")
		s.Twin, s.Workloads, s.Primary.Workload = false, s.Workloads[1:], "open"
		s.Trial.Measure = 500 * time.Millisecond
		tr, err := lab.OneTrial(t.Context(), options(t, s), 200)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := tr.Metrics["cpu_per_request"]; !known {
			t.Skip("SKIPPED: this system does not tell the CPU time of a process")
		}
		got[mode] = tr.Metrics["deferred_cpu"]
	}
	if time.Duration(got["defers"]-got["ok"]) < 300*time.Microsecond {
		t.Errorf("after the load a request took %v of an arm that puts off 1 ms, and %v of one that does not", time.Duration(got["defers"]), time.Duration(got["ok"]))
	}
}
