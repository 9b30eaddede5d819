package chart_test

import (
	"math"
	"testing"

	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/stats"
)

func TestTrend(t *testing.T) {
	line := chart.Trend{Class: "c1", Points: []chart.Estimate{
		{X: 0, Value: 1, Interval: stats.Interval{Lo: 0, Hi: 2}}, {X: 1, Value: 2, Interval: stats.Interval{Lo: math.Inf(-1), Hi: math.Inf(1)}}}}
	area, lines := line.Draw(chart.Axis{Lo: 0, Hi: 1, Span: 100}, chart.Axis{Lo: 0, Hi: 4, Span: 40})
	if want := "M0 20L100 0L100 40L0 40Z"; area.D != want || area.Class != "c1" {
		t.Errorf("the area is %+v, want %s", area, want)
	}
	for i, want := range []chart.Curve{{"c1", "M0 30L100 20"}, {"c1", "M0 40L0 20M100 40L100 0"}, {"c1 dot", "M0 30h0M100 20h0"}} {
		if lines[i] != want {
			t.Errorf("line %d is %+v, want %+v", i, lines[i], want)
		}
	}
	line.Points = line.Points[:1]
	if area, _ := line.Draw(chart.Axis{Lo: 0, Hi: 1, Span: 100}, chart.Axis{Lo: 0, Hi: 4, Span: 40}); area.D != "" {
		t.Errorf("one point has the area %q, want none", area.D)
	}
}
