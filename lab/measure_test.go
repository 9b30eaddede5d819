package lab_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
)

// A worker that ends in a trial takes its counts along. What is left is no count of
// the load's, least of all one that wraps around below 0.
func TestSpentByThoseWhoEnded(t *testing.T) {
	before := arm.Usage{CPU: 10 * time.Second, Voluntary: 9000, Involuntary: 1000, MinorFaults: 50, MajorFaults: 5}
	after := arm.Usage{CPU: 12 * time.Second, Voluntary: 4000, Involuntary: 500, MinorFaults: 60, MajorFaults: 5}
	got := lab.Spent(before, after, 1000)
	if v, told := got["switches_per_request"]; told {
		t.Errorf("switches from 10,000 to 4,500: got %v a request, want none told", v)
	}
	if got["cpu_per_request"] != 2e6 || got["faults_per_request"] != 0.01 {
		t.Errorf("got %v, want 2 ms of CPU and 0.01 faults a request", got)
	}
	if v, told := lab.Spent(after, before, 1000)["cpu_per_request"]; told {
		t.Errorf("CPU time that shrank: got %v, want none told", v)
	}
}
