package report

import (
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/verdict"
)

// htmlClaim is a published claim against what was measured.
type htmlClaim struct {
	ID, Sentence string
	Verdict      mark
	Checks       []htmlCheck
}

type htmlCheck struct {
	Headline                  bool // it decides the claim, beside others
	Says, Published, Measured string
	Parts                     []htmlPart
	Bar                       *chart.Bar
}

// htmlPart is the verdict on a part of a check.
type htmlPart struct {
	Name, More string
	Verdict    mark
	Reason     string // why it is not comparable
}

func newHTMLClaim(c *verdict.Claim) htmlClaim {
	out := htmlClaim{ID: c.ID, Sentence: unbroken(c.Sentence), Verdict: toneOfWord(c.Verdict).mark(string(c.Verdict))}
	for i := range c.Checks {
		check := newHTMLCheck(&c.Checks[i])
		check.Headline = i < c.Deciding && len(c.Checks) > 1
		out.Checks = append(out.Checks, check)
	}
	return out
}

func newHTMLCheck(r *verdict.CheckResult) htmlCheck {
	out := htmlCheck{
		Says: sayingOf(r), Published: published(r), Measured: measured(r), Bar: claimBar(r),
	}
	for _, p := range partsOf(r) {
		h := htmlPart{Name: p.name, More: p.more(), Verdict: toneOfWord(p.Verdict).mark(string(p.Verdict))}
		if p.Verdict == verdict.NotComparable {
			h.Reason = p.Reason
		}
		out.Parts = append(out.Parts, h)
	}
	return out
}

// claimBar draws a published difference beside the measured one.
func claimBar(r *verdict.CheckResult) *chart.Bar {
	c := r.Comparison
	if c == nil || c.Withheld != "" || r.Difference.Verdict == "" {
		return nil
	}
	var e chart.Extent
	e.Add(0, r.PublishedDifference, c.Difference.Value, c.Difference.Interval.Lo, c.Difference.Interval.Hi)
	b := chart.NewBar(chart.Effect{
		Value: c.Difference.Value, Interval: c.Difference.Interval, Published: &r.PublishedDifference,
	}, e.Axis(0.08, chart.Across))
	b.Label = "published " + verdict.ShowSigned(r.Metric, r.PublishedDifference) + ", measured " +
		verdict.ShowSigned(r.Metric, c.Difference.Value) + ", interval " + verdict.SpanSigned(r.Metric, c.Difference.Interval)
	return b
}
