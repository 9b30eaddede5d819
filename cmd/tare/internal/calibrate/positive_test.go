package calibrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/studies"
)

// A positive control's arms run the same code, one of them longer.
func TestPositiveControlIsPlanned(t *testing.T) {
	null, err := studies.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	before, under := null.Workloads[0].Targets[0].Path, null.Primary.Workload
	s, err := dearerBy(null, &SelftestCmd{Measure: leastMeasure}, 4*time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	if s.AA || s.Primary.Arm != dearer || len(s.Workloads) != 1 || s.Workloads[0].Name != busy || s.Primary.Workload != busy || !slices.Contains(s.Arms[0].Args, "1µs") || !slices.Contains(s.Arms[1].Args, "5µs") || !slices.Contains(s.Arms[0].Args, "-aside") {
		t.Errorf("got %+v", s)
	}
	if null.Workloads[0].Targets[0].Path != before || null.Primary.Workload != under {
		t.Error("study null itself has changed")
	}
}

// Found are verdicts of slower; holding, intervals with the truth in them.
func TestPositiveControlCounts(t *testing.T) {
	for _, tc := range []struct {
		share          float64 // of 30 µs, which is what the study shows
		added          time.Duration
		found, holding int
	}{
		{0.1, 3 * time.Microsecond, 1, 1},
		{0.1, 6 * time.Microsecond, 1, 0},
		{0.0001, 3 * time.Microsecond, 0, 0},
		{-0.1, 3 * time.Microsecond, 0, 0},
	} {
		sum := summed(t, counted(t, nulled(t, 8, tc.share, 0.001), tc.added))
		if sum.Studies != 0 || len(sum.Positive) != 1 {
			t.Fatalf("%+v: got %+v, want one study of a known difference", tc, sum)
		}
		if p := sum.Positive[0]; p.Added != tc.added || p.Studies != 1 || p.Found != tc.found || p.Holding != tc.holding || len(p.Shares) != 1 || len(p.Differences) != 1 {
			t.Errorf("%+v: got %+v", tc, p)
		}
	}
	p := noise.Positive{Added: 3 * time.Microsecond, Studies: 4, Found: 3, Holding: 4, Shares: []float64{0.1, 0.12, 0.08}}
	if got, want := p.String(), "3.00 µs more CPU a request (10.0 %) was found in 3 of 4 studies and lay in the interval of 4"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
