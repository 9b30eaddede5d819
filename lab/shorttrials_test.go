package lab_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/lab"
)

// A run whose trials are short warns of it, once also when it is resumed.
func TestScantTrials(t *testing.T) {
	t.Parallel()
	s := small(t, "ok", "ok")
	s.Workloads[1].Measure = 2 * s.Trial.Measure
	o := options(t, s)
	o.Blocks = 1
	if _, err := lab.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Resume, o.Blocks = true, 2
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(run.Manifest.Warnings, "\n")
	for _, want := range []string{
		"workload closed: a trial measures 120ms and fewer than 20000 requests",
		"workload open: a trial measures 240ms and fewer than 20000 requests",
	} {
		if n := strings.Count(all, want); n != 1 {
			t.Errorf("%q is in the warnings %d times, want once:\n%s", want, n, all)
		}
	}
}
