package verdict

import (
	"fmt"
	"slices"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/unit"
)

// Word is a verdict on a claim or a part of one.
type Word string

// The verdicts on claims. A part that the claim does not speak of has "".
const (
	Confirmed     Word = "confirmed"
	DirectionOnly Word = "confirmed in direction only" // of a whole claim, as the next
	SizeExcluded  Word = "contradicted in size only"   // whether there is an effect at all is open
	Contradicted  Word = "contradicted"
	Inconclusive  Word = "inconclusive"
	NotComparable Word = "not comparable"
)

// Settled reports whether a verdict on a claim decides, if only on its direction or size.
func (w Word) Settled() bool {
	return w == Confirmed || w == DirectionOnly || w == SizeExcluded || w == Contradicted
}

// Finding is the verdict on one part of a check.
type Finding struct {
	Verdict Word   `json:"verdict"`
	Reason  string `json:"reason"`         // one clause, always there with a verdict
	Needs   int    `json:"needs,omitzero"` // when inconclusive: about so many more blocks would decide; 0 = not known
	// Rounds is set where Needs counts rounds of captures: more blocks bring no more of them.
	Rounds bool `json:"rounds,omitzero"`
	off    bool // of a size: what was measured is not near it, whether or not it is excluded
}

// More says what would decide, such as "3 more blocks"; "" where it is not known or too much
// to ask for.
func (f Finding) More() string {
	switch {
	case f.Needs <= 0 || f.Needs > MostWorthwhile:
		return ""
	case f.Rounds:
		return unit.Plural(f.Needs, "more round") + " of captures that count"
	}
	return unit.Plural(f.Needs, "more block")
}

// CheckResult is what became of one check of a claim.
type CheckResult struct {
	Check   study.Check
	Metric  study.Metric // of effects, interactions and bounds
	Against string       // the arm compared with, the control filled in

	// Comparison is the measured effect, nil where there is none.
	Comparison *Comparison
	// Measured is the excess of an interaction, or what is held to a bound.
	Measured *Estimate
	// Reported is the fact that the arm reports; "" = it reports none.
	Reported string

	// PublishedRatio (arm to against) and PublishedDifference are there with
	// Ratio and Difference. NaN never occurs.
	PublishedRatio      float64
	PublishedDifference float64

	Direction  Finding // effect, interaction
	Ratio      Finding // effect
	Difference Finding // effect
	Levels     Finding // effect: NotComparable or ""
	Holds      Finding // fact, bound
}

// Claim is what became of a claim. Its first check is the published headline
// and alone decides, or several from the first on do together, all of which must
// hold; the others are parts of the statement, shown beside it.
type Claim struct {
	ID       string        `json:"id"`
	Verdict  Word          `json:"verdict"`
	Sentence string        `json:"sentence"`       // the verdict in plain words, the number of checks included
	Needs    int           `json:"needs,omitzero"` // when inconclusive; Rounds as in a finding
	Rounds   bool          `json:"rounds,omitzero"`
	Checks   []CheckResult `json:"-"`

	Contradicted int `json:"contradicted"` // checks by their direction, fact or bound, as the next
	Undecided    int `json:"undecided"`
	Unjudged     int `json:"not_judged"`
	InSize       int `json:"contradicted_in_size"` // not by their direction, which holds or is open
	Deciding     int `json:"deciding"`             // how many of the checks decide, from the first on
	Part         int `json:"-"`                    // which of them gave the verdict, from 0
}

func (an *analyser) claim(c study.Claim, a *Analysis) Claim {
	out := Claim{ID: c.ID, Deciding: len(c.Headline())}
	measured := 0 // of those that decide; a fact is known without error
	for _, check := range c.Headline() {
		if check.Kind != study.Fact {
			measured++
		}
	}
	for i, check := range c.Checks {
		family := 1
		if i < out.Deciding {
			family = max(1, measured)
		}
		out.Checks = append(out.Checks, an.check(check, a, family))
	}
	out.sum()
	return out
}

// decisive is the finding that decides on the check.
func (r *CheckResult) decisive() Finding {
	if r.Holds.Verdict != "" {
		return r.Holds
	}
	return r.Direction
}

// sum draws the findings together.
func (c *Claim) sum() {
	for i := range c.Checks {
		v := c.Checks[i].decisive().Verdict
		if v != Contradicted && c.Checks[i].size(Contradicted).Verdict != "" {
			c.InSize++
		}
		switch v {
		case Contradicted:
			c.Contradicted++
		case Inconclusive:
			c.Undecided++
		case NotComparable, "":
			c.Unjudged++
		}
	}
	c.Verdict, c.Sentence = NotComparable, "It was not judged: it has no checks."
	if len(c.Checks) > 0 {
		c.decide()
	}
	c.Sentence += fmt.Sprintf(" %d of %s contradicted", c.Contradicted, unit.Plural(len(c.Checks), "check"))
	if c.InSize > 0 {
		c.Sentence += fmt.Sprintf(" and %d more in size", c.InSize)
	}
	c.Sentence += fmt.Sprintf(", %d undecided", c.Undecided)
	if c.Unjudged > 0 {
		c.Sentence += fmt.Sprintf(", %d not judged", c.Unjudged)
	}
	c.Sentence += "."
}

// decide gives the claim the gravest verdict of the checks that decide, all of which
// must hold.
func (c *Claim) decide() {
	for _, want := range []Word{Contradicted, Inconclusive, NotComparable, SizeExcluded, DirectionOnly, Confirmed} {
		for i := range c.Deciding {
			r := &c.Checks[i]
			verdict, sentence := r.verdict()
			if verdict != want {
				continue
			}
			if c.Deciding > 1 {
				sentence = fmt.Sprintf("Part %d of %d: %s", i+1, c.Deciding, sentence)
				if verdict == Confirmed { // the gravest there is
					sentence = "All parts hold. " + sentence
				}
			}
			if verdict == Inconclusive {
				c.Needs, c.Rounds = r.open().Needs, r.open().Rounds
			}
			c.Verdict, c.Sentence, c.Part = verdict, sentence, i
			return
		}
	}
}

// verdict is that on the claim whose headline the check is.
func (r *CheckResult) verdict() (Word, string) {
	f, size := r.decisive(), r.size(Contradicted, Inconclusive, Confirmed)
	said := f.Reason
	if size.Verdict != "" {
		said += "; " + size.Reason
	}
	switch f.Verdict {
	case Contradicted:
		return Contradicted, "It does not hold here: " + said + "."
	case Inconclusive:
		if r.size(Inconclusive, Confirmed, Contradicted).Verdict == Contradicted { // no part of it is left
			return SizeExcluded, "The published size does not hold here, the direction is not settled: " + said + f.wouldDo() + "."
		}
		return Inconclusive, "This run cannot decide: " + said + r.open().wouldDo() + "."
	case Confirmed:
	default:
		return NotComparable, "It was not judged: " + f.Reason + "."
	}
	switch size.Verdict {
	case Contradicted:
		return DirectionOnly, "The direction holds here, the published size does not: " + said + "."
	case Inconclusive:
		return DirectionOnly, "The direction holds here, the size is not settled: " + said + size.wouldDo() + "."
	}
	return Confirmed, "It holds here: " + said + "."
}

// size is the finding on difference or ratio that comes first in an order of verdicts: how
// far the direction holds is decided by the one that disagrees, else by the one that is open.
func (r *CheckResult) size(order ...Word) Finding {
	sizes := []Finding{r.Difference, r.Ratio}
	for _, v := range order {
		if i := slices.IndexFunc(sizes, func(f Finding) bool { return f.Verdict == v }); i >= 0 {
			return sizes[i]
		}
	}
	return Finding{}
}

// open is the decisive finding of a check that is inconclusive, with what would settle it first:
// its direction, or that every published size is excluded.
func (r *CheckResult) open() Finding {
	f, needs := r.decisive(), max(r.Difference.Needs, r.Ratio.Needs)
	stays := func(size Finding) bool {
		return !size.off && (size.Verdict == Inconclusive || size.Verdict == Confirmed)
	}
	if needs > 0 && !stays(r.Difference) && !stays(r.Ratio) && (f.Needs == 0 || needs < f.Needs) {
		f.Needs = needs
	}
	return f
}

func (f Finding) wouldDo() string {
	if f.More() == "" {
		return ""
	}
	return "; about " + f.More() + " would"
}
