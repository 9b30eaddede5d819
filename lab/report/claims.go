package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// howClaims says what a verdict on a claim rests on.
const howClaims = "A claim has the verdict of its first check, the published headline; the others are parts of it, shown beside it. " +
	"Each is judged at the level of its workload's intervals, not corrected for being many."

// howParts says what a verdict on a claim of several parts rests on.
const howParts = " Of a claim with several headlines all must hold; they share that level."

// claims writes what became of the published claims.
func (p *page) claims(a *verdict.Analysis) {
	if len(a.Claims) == 0 {
		return
	}
	p.heading("Published claims")
	p.wrapIn(dim, "  ", howDecided(a.Claims))
	for _, c := range a.Claims {
		p.line("")
		p.line("  %s  %s", p.in(bold, c.ID), p.in(toneOfWord(c.Verdict).style(), string(c.Verdict)))
		p.wrap("    ", c.Sentence)
		said := c.Sentence // reasons that several checks share are given once
		for i := range c.Checks {
			says := sayingOf(&c.Checks[i])
			if i < c.Deciding && len(c.Checks) > 1 {
				says = "headline: " + says
			}
			p.wrap("    - ", says)
			said += p.check(&c.Checks[i], said)
		}
	}
}

// howDecided says what the verdicts on claims rest on.
func howDecided(claims []verdict.Claim) string {
	if slices.ContainsFunc(claims, func(c verdict.Claim) bool { return c.Deciding > 1 }) {
		return howClaims + howParts
	}
	return howClaims
}

// sayingOf is what a check puts to the test, in words.
func sayingOf(r *verdict.CheckResult) string {
	return cmp.Or(r.Check.Says, string(r.Check.Kind))
}

// check writes what became of one check; reasons that were said are not
// repeated. It returns those that it wrote.
func (p *page) check(r *verdict.CheckResult, said string) (reasons string) {
	if text := published(r); text != "" {
		p.wrap("      published  ", text)
	}
	if text := measured(r); text != "" {
		p.wrap("      measured   ", text)
	}
	if text := findings(r); text != "" {
		p.wrap("      verdict    ", text)
	}
	for _, f := range []verdict.Finding{r.Direction, r.Holds, r.Levels} {
		if f.Verdict == verdict.NotComparable && !strings.Contains(said, f.Reason) {
			p.wrapIn(dim, "                 ", f.Reason)
			reasons += f.Reason + "\n"
		}
	}
	return reasons
}

// published is what the claim says, in figures.
func published(r *verdict.CheckResult) string {
	k := r.Check
	switch {
	case k.Kind == study.Fact:
		return k.Fact + " " + k.Value
	case k.Kind == study.Bound && k.BoundRatio != nil:
		return fmt.Sprintf("%s %s that of %s", k.Op, verdict.Times(*k.BoundRatio), r.Against)
	case k.Kind == study.Bound && k.Bound != nil:
		return k.Op + " " + verdict.Show(r.Metric, *k.Bound)
	case k.PublishedDifference != nil:
		return verdict.ShowSigned(r.Metric, *k.PublishedDifference)
	case k.PublishedRatio != nil:
		return unit.Change(*k.PublishedRatio - 1)
	case k.PublishedArm == nil || k.PublishedAgainst == nil:
		return ""
	}
	text := fmt.Sprintf("%s against %s", verdict.Show(r.Metric, *k.PublishedArm), verdict.Show(r.Metric, *k.PublishedAgainst))
	if r.Difference.Verdict != "" {
		text += " (" + verdict.ShowSigned(r.Metric, r.PublishedDifference)
		if r.PublishedRatio > 0 {
			text += ", " + unit.Change(r.PublishedRatio-1)
		}
		text += ")"
	}
	return text
}

// measured is what this run says of the same.
func measured(r *verdict.CheckResult) string {
	switch {
	case r.Check.Kind == study.Fact && r.Reported != "":
		return r.Check.Fact + " " + r.Reported
	case r.Measured != nil && r.Check.Kind == study.Interaction:
		return fmt.Sprintf("%s (%s)", verdict.ShowSigned(r.Metric, r.Measured.Value), verdict.SpanSigned(r.Metric, r.Measured.Interval))
	case r.Measured != nil && r.Check.BoundRatio != nil:
		return fmt.Sprintf("%s (%s)", verdict.Times(r.Measured.Value), verdict.SpanTimes(r.Measured.Interval))
	case r.Measured != nil:
		return fmt.Sprintf("%s (%s)", verdict.Show(r.Metric, r.Measured.Value), verdict.Span(r.Metric, r.Measured.Interval))
	case r.Comparison == nil:
		return ""
	}
	c := r.Comparison
	text := fmt.Sprintf("%s against %s", verdict.Show(r.Metric, c.ArmMedian), verdict.Show(r.Metric, c.AgainstMedian))
	if c.Withheld != "" {
		return text
	}
	text += " (" + verdict.ShowSigned(r.Metric, c.Difference.Value)
	if e, ok := c.Relative(); ok {
		text += ", " + unit.Change(e.Value)
	}
	return text + "; " + c.Range() + ")"
}

// part is what became of one part of a check.
type part struct {
	name string
	verdict.Finding
}

// partsOf are the parts of a check that the claim speaks of.
func partsOf(r *verdict.CheckResult) []part {
	all := []part{{"direction", r.Direction}, {"ratio", r.Ratio}, {"difference", r.Difference}, {"absolute figures", r.Levels}, {string(r.Check.Kind), r.Holds}}
	return slices.DeleteFunc(all, func(p part) bool { return p.Verdict == "" })
}

// more says how many more blocks would decide, if that is worth saying.
func (p part) more() string {
	return moreBlocks(p.Needs)
}

func moreBlocks(n int) string {
	switch {
	case n <= 0 || n > verdict.MostWorthwhile:
		return ""
	case n == 1:
		return "~1 more block"
	}
	return fmt.Sprintf("~%d more blocks", n)
}

// findings are the verdicts on the parts.
func findings(r *verdict.CheckResult) string {
	var texts []string
	for _, p := range partsOf(r) {
		text := p.name + " " + string(p.Verdict)
		if more := p.more(); more != "" {
			text += " (" + more + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " · ")
}
