package study_test

import (
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/hist"
)

// More is better of these alone; of all others a rise is for the worse.
func TestHigherIsBetter(t *testing.T) {
	var higher []string
	for _, m := range study.Metrics() {
		if m.Higher {
			higher = append(higher, m.Name)
		}
	}
	if want := []string{"throughput", "resumed", "loop_cache_hits", "pool_returns", "reuse"}; !slices.Equal(higher, want) {
		t.Errorf("more is better of %q, want %q", higher, want)
	}
}

// Every quantile of requests asks for as many as a histogram says it needs.
func TestQuantilesNeed(t *testing.T) {
	quantile := regexp.MustCompile(`(?:^|_)p([0-9]{2})([0-9]*)(?:_|$)`)
	seen := 0
	for _, m := range study.Metrics() {
		want := 0
		if p := quantile.FindStringSubmatch(m.Name); p != nil && m.Name != "gc_pause_p99" { // which is of pauses
			percent, err := strconv.ParseFloat(p[1]+"."+p[2]+"0", 64)
			if err != nil {
				t.Fatal(err)
			}
			want = int(hist.Needed(percent / 100))
			seen++
		}
		if m.Requests != want {
			t.Errorf("%s needs %d requests, want %d", m.Name, m.Requests, want)
		}
	}
	if seen == 0 {
		t.Error("no quantile among the metrics")
	}
}
