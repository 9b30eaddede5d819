package lab_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/lab"
)

// An arm that is too busy to tell its own metrics before the load is measured from outside.
func TestUntold(t *testing.T) {
	tr := lab.Untold(sound())
	if len(tr.Invalid) > 0 || !strings.Contains(strings.Join(tr.Warnings, "; "), "the arm's own metrics are missing: context deadline exceeded") {
		t.Errorf("invalid %q, warnings %q: want a warning alone", tr.Invalid, tr.Warnings)
	}
	for _, own := range []string{"goroutines", "goroutine_growth", "gc_cpu", "alloc_bytes"} {
		if got, ok := tr.Metrics[own]; ok {
			t.Errorf("%s is %g, although nothing was told before the load", own, got)
		}
	}
	if tr.Metrics["cpu_per_request"] == 0 || tr.Metrics["throughput"] == 0 {
		t.Errorf("got %v, want CPU per request and throughput", tr.Metrics)
	}
}
