package verdict_test

import (
	"testing"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

// What is far below anything that matters of a metric is 0, in bounds of intervals, too.
func TestShowOfNothing(t *testing.T) {
	for _, tt := range []struct {
		metric string
		value  float64
		want   string // signed
	}{
		{"loop_bytes", -2.68e-6, "0 B"},
		{"loop_bytes", 4.82e-6, "0 B"},
		{"loop_bytes", 0.02, "+0.0200 B"},
		{"alloc_bytes", -1e-3, "0 B"},
		{"loop_allocs", 2.95e-7, "0"},
		{"loop_allocs", 0.00391, "+0.00391"},
		{"loop_time", 6.29e-10, "0 ns"},
		{"loop_time", -0.00192, "-0.00192 ns"},
		{"errors", 1e-5, "0.0 %"},
		{"errors", 0.01, "+1.0 %"},
		{"faults_per_request", 0.000177, "+0.000177"},
	} {
		m, ok := study.MetricNamed(tt.metric)
		if !ok {
			t.Fatalf("no metric %s", tt.metric)
		}
		if got := verdict.ShowSigned(m, tt.value); got != tt.want {
			t.Errorf("ShowSigned(%s, %v) = %q, want %q", tt.metric, tt.value, got, tt.want)
		}
		i := stats.Interval{Lo: tt.value, Hi: 32}
		if got, want := verdict.SpanSigned(m, i), tt.want+" to "+verdict.ShowSigned(m, 32); got != want {
			t.Errorf("SpanSigned(%s, %v) = %q, want %q", tt.metric, i, got, want)
		}
	}
}
