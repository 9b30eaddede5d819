package report

import (
	"github.com/tarehq/tare/lab/verdict"
)

// htmlClaim is a published claim against what was measured.
type htmlClaim struct {
	ID, Sentence string
	Verdict      mark
	Checks       []htmlCheck
}

type htmlCheck struct {
	Says, Published, Measured string
	Parts                     []htmlPart
	Bar                       *bar
}

// htmlPart is the verdict on a part of a check.
type htmlPart struct {
	Name, More string
	Verdict    mark
	Reason     string // why it is not comparable
}

func newHTMLClaim(c *verdict.Claim) htmlClaim {
	out := htmlClaim{ID: c.ID, Sentence: unbroken(c.Sentence), Verdict: markOfWord(c.Verdict)}
	for i := range c.Checks {
		out.Checks = append(out.Checks, newHTMLCheck(&c.Checks[i]))
	}
	return out
}

func markOfWord(w verdict.Word) mark {
	m := mark{Word: string(w)}
	switch w {
	case verdict.Confirmed:
		m.Symbol, m.Class = "✓", "yes"
	case verdict.DirectionOnly:
		m.Symbol, m.Class = "◐", "partly"
	case verdict.Contradicted:
		m.Symbol, m.Class = "✗", "no"
	case verdict.Inconclusive:
		m.Symbol, m.Class = "?", "open"
	default:
		m.Symbol, m.Class = "–", "none"
	}
	return m
}

func newHTMLCheck(r *verdict.CheckResult) htmlCheck {
	out := htmlCheck{
		Says: r.Check.Says, Published: published(r), Measured: measured(r), Bar: claimBar(r),
	}
	if out.Says == "" {
		out.Says = string(r.Check.Kind)
	}
	for _, p := range partsOf(r) {
		h := htmlPart{Name: p.name, More: p.more(), Verdict: markOfWord(p.Verdict)}
		if p.Verdict == verdict.NotComparable {
			h.Reason = p.Reason
		}
		out.Parts = append(out.Parts, h)
	}
	return out
}

// claimBar draws a published difference beside the measured one.
func claimBar(r *verdict.CheckResult) *bar {
	c := r.Comparison
	if c == nil || c.Withheld != "" || r.Difference.Verdict == "" {
		return nil
	}
	var e extent
	e.add(0, r.PublishedDifference, c.Difference.Value, c.Difference.Interval.Lo, c.Difference.Interval.Hi)
	x := e.axis(0.08, across)
	b := &bar{Zero: x.at(0), Line: whiskers(c.Difference.Interval, x)}
	var point, published path
	point.dot(x.at(c.Difference.Value), barHeight/2)
	published.to(x.at(r.PublishedDifference), 2)
	published.to(x.at(r.PublishedDifference), barHeight-2)
	b.Point, b.Published = point.String(), published.String()
	b.Label = "published " + verdict.ShowSigned(r.Metric, r.PublishedDifference) + ", measured " +
		verdict.ShowSigned(r.Metric, c.Difference.Value) + ", interval " + verdict.SpanSigned(r.Metric, c.Difference.Interval)
	return b
}
