package claims

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// mostFigure is the most room that a figure takes in the table of claims.
const mostFigure = 20

// describeFigures is a published row in words, such as "layers 5, us 12.3".
func describeFigures(row map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(row)) {
		value := row[name]
		if number, ok := value.(float64); ok {
			value = strconv.FormatFloat(number, 'f', -1, 64)
		}
		all = append(all, fmt.Sprint(name, " ", value))
	}
	return strings.Join(all, ", ")
}

// publishedFigure is what a check holds a measurement against, in the shortest
// form: a level, a difference, a relative change or a direction.
func publishedFigure(k study.Check) string {
	m, _ := study.MetricNamed(k.Metric)
	switch {
	case k.Kind == study.Fact:
		return k.Value
	case k.Kind == study.Bound && k.BoundRatio != nil:
		return k.Op + " " + verdict.Times(*k.BoundRatio)
	case k.Kind == study.Bound && k.Bound != nil:
		return k.Op + " " + verdict.Show(m, *k.Bound)
	case k.PublishedDifference != nil:
		return verdict.ShowSigned(m, *k.PublishedDifference)
	case k.PublishedRatio != nil:
		return unit.Change(*k.PublishedRatio - 1)
	case k.PublishedArm != nil && k.PublishedAgainst != nil:
		return verdict.ShowSigned(m, *k.PublishedArm-*k.PublishedAgainst)
	}
	return k.Direction
}

// measuredFigure is what was measured in the form of [publishedFigure], with the
// interval behind the verdict and its level; "" where the check could not be made.
func measuredFigure(r *verdict.CheckResult) (value, interval string) {
	m, e := r.Metric, r.Measured
	switch c := r.Comparison; {
	case r.Check.Kind == study.Fact:
		return doc.Printable(r.Reported), ""
	case e != nil && r.Check.Kind == study.Interaction:
		return verdict.ShowSigned(m, e.Value), e.Called() + " " + verdict.SpanSigned(m, e.Interval)
	case e != nil && r.Check.BoundRatio != nil:
		return verdict.Times(e.Value), e.Called() + " " + verdict.SpanTimes(e.Interval)
	case e != nil:
		return verdict.Show(m, e.Value), e.Called() + " " + verdict.Span(m, e.Interval)
	case c == nil || c.Withheld != "":
		return "", ""
	default:
		change, relative := c.Relative()
		by := r.Deciding()
		switch {
		case relative && r.Check.PublishedRatio != nil:
			return unit.Change(change.Value), by.Text(c)
		case relative && (by.Level != change.Level || r.Direction.Verdict.Settled() && c.Difference.Interval.Contains(0)):
			// What decided is a share: no effect was found, or one that its unit does not show.
			return verdict.ShowSigned(m, c.Difference.Value), unit.Change(change.Value) + ", " + by.Text(c)
		case relative:
			return verdict.ShowSigned(m, c.Difference.Value), change.Called() + " " + verdict.SpanSigned(m, c.Difference.Interval)
		}
		return verdict.ShowSigned(m, c.Difference.Value), by.Text(c)
	}
}
