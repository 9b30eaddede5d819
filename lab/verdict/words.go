package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// direction is what to call an arm whose metric is higher, or lower, than the control's.
type direction struct{ higher, lower string }

func directionOf(m study.Metric) direction {
	switch {
	case strings.Contains(m.Name, "cpu"):
		return direction{"more CPU", "less CPU"}
	case strings.HasPrefix(m.Name, "alloc_") || m.Name == "loop_bytes" || m.Name == "loop_allocs":
		return direction{"allocates more", "allocates less"}
	case m.Unit == unit.Nanoseconds:
		return direction{"slower", "faster"}
	case m.Unit == unit.Bytes:
		return direction{"more memory", "less memory"}
	case m.Unit == unit.PerSecond:
		return direction{"more throughput", "less throughput"}
	case m.Unit == unit.Share:
		return direction{"a larger share", "a smaller share"}
	}
	return direction{"more", "fewer"}
}

// Word says the verdict in words fit for the metric: "slower", "less memory",
// "no different", "undecided". It is "not compared" where there is none.
func (c *Comparison) Word() string {
	if c.Withheld != "" || c.N == 0 {
		return "not compared"
	}
	d := directionOf(c.Metric)
	word := d.lower
	if c.Effect.Effect > 0 {
		word = d.higher
	}
	switch c.Verdict {
	case stats.Faster, stats.Slower:
		return word
	case stats.Small:
		return "a little " + strings.TrimPrefix(strings.TrimPrefix(word, "a "), "allocates ")
	case stats.Equivalent:
		return "no different"
	}
	return "undecided"
}

// Show writes a value in the metric's unit. What is far below anything that matters is 0: a
// loop of a million calls that allocates a few bytes beside them has not measured 0.000003 B.
func Show(m study.Metric, v float64) string {
	if math.Abs(v) < max(m.Grain/100, 1e-6) {
		v = 0
	}
	return unit.Format(v, m.Unit)
}

// ShowSigned is Show with a plus sign before what is positive, and not 0.
func ShowSigned(m study.Metric, v float64) string {
	if text := Show(m, v); v <= 0 || text == Show(m, 0) {
		return text
	}
	return "+" + Show(m, v)
}

// Figure is the effect for people: relative where there is a ratio, "+2.1 %",
// else the difference, "+620 ns".
func (c *Comparison) Figure() string {
	if e, ok := c.Relative(); ok {
		return unit.Change(e.Value)
	}
	return ShowSigned(c.Metric, c.Difference.Value)
}

// Range is the interval of the effect for people, such as "+1.2 to +3.0 %", or "unbounded".
func (c *Comparison) Range() string {
	if e, ok := c.Relative(); ok {
		return Changes(e.Interval)
	}
	return SpanSigned(c.Metric, c.Difference.Interval)
}

// Confidence is the level of an interval for people: an alpha of 0.01 is "99 %".
func Confidence(alpha float64) string { return fmt.Sprintf("%.4g %%", 100*(1-alpha)) }

// size says the effect with its interval, such as "+2.1 %, 99 % interval +1.2 to +3.0 %, 8 blocks".
func (c *Comparison) size() string {
	return fmt.Sprintf("%s, %s, %s", c.Figure(), c.decidedBy(c.Effect.Interval, c.Alpha).Text(c), unit.Plural(c.N, "block"))
}

// BandText is the band for people, such as "1.0 %".
func (m *Metric) BandText() string { return bandText(m.Metric, m.Scale, m.Band()) }

// ThresholdText is the threshold for people.
func (m *Metric) ThresholdText() string { return bandText(m.Metric, m.Scale, m.Threshold) }

// FloorText is the noise floor for people.
func (m *Metric) FloorText() string { return bandText(m.Metric, m.Scale, m.Floor) }

func (c *Comparison) thresholdText() string { return bandText(c.Metric, c.Scale, c.Threshold) }

func bandText(m study.Metric, s Scale, band float64) string {
	if s == Ratio {
		return strings.TrimPrefix(unit.Change(math.Expm1(band)), "+")
	}
	return Show(m, band)
}

// Times writes a ratio, such as "0.55 ×".
func Times(ratio float64) string { return unit.Format(ratio, "") + " ×" }

// SpanTimes writes an interval of ratios; "unbounded" with too few blocks.
func SpanTimes(i stats.Interval) string { return span(study.Metric{}, i, Show) }

// Span writes an interval of levels; "unbounded" with too few blocks.
func Span(m study.Metric, i stats.Interval) string { return span(m, i, Show) }

// SpanSigned writes an interval of differences; "unbounded" with too few blocks.
func SpanSigned(m study.Metric, i stats.Interval) string { return span(m, i, ShowSigned) }

func span(m study.Metric, i stats.Interval, show func(study.Metric, float64) string) string {
	if math.IsInf(i.Width(), 0) {
		return "unbounded"
	}
	return show(m, i.Lo) + " to " + show(m, i.Hi)
}

// Changes writes an interval of relative changes.
func Changes(i stats.Interval) string {
	if math.IsInf(i.Hi, 1) {
		return "unbounded"
	}
	return trimPercent(unit.Change(i.Lo)) + " to " + unit.Change(i.Hi)
}

func trimPercent(s string) string { return strings.TrimSuffix(s, " %") }

// parenthesised is a metric's title within a sentence: "response time, p99" is
// "response time (p99)".
func parenthesised(m study.Metric) string {
	if head, tail, ok := strings.Cut(m.Title, ", "); ok {
		return head + " (" + tail + ")"
	}
	return m.Title
}

// Called is an arm's title, or its name without one.
func (a *Analysis) Called(arm string) string {
	for _, s := range a.Manifest.Study.Arms {
		if s.Name == arm && s.Title != "" {
			return s.Title
		}
	}
	return arm
}
