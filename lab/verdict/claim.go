package verdict

import (
	"fmt"
	"slices"

	"github.com/tarehq/tare/lab/study"
)

// Word is a verdict on a claim or a part of one.
type Word string

// The verdicts on claims. A part that the claim does not speak of has "".
const (
	Confirmed     Word = "confirmed"
	DirectionOnly Word = "confirmed in direction only" // of a whole claim
	Contradicted  Word = "contradicted"
	Inconclusive  Word = "inconclusive"
	NotComparable Word = "not comparable"
)

// Finding is the verdict on one part of a check.
type Finding struct {
	Verdict Word
	Reason  string // one clause, always there with a verdict
	Needs   int    // when inconclusive: about so many more blocks would decide; 0 = not known
}

// CheckResult is what became of one check of a claim.
type CheckResult struct {
	Check   study.Check
	Metric  study.Metric // of effects, interactions and bounds
	Against string       // the arm compared with, the control filled in

	// Comparison is the measured effect, nil where there is none.
	Comparison *Comparison
	// Measured is the excess of an interaction or the level held to a bound.
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

	Sentence string // the result in plain words
}

// Claim is what became of a claim.
type Claim struct {
	ID       string
	Checks   []CheckResult
	Verdict  Word
	Needs    int    // when inconclusive
	Sentence string // the verdict in plain words
}

func (an *analyser) claim(c study.Claim, a *Analysis) Claim {
	out := Claim{ID: c.ID}
	for _, check := range c.Checks {
		r := an.check(check, a)
		r.Sentence = r.sentence()
		out.Checks = append(out.Checks, r)
	}
	out.sum()
	return out
}

// decisive are the findings that decide on the claim; sizes those that decide
// how far it holds.
func (r *CheckResult) decisive() []Finding { return []Finding{r.Direction, r.Holds} }
func (r *CheckResult) sizes() []Finding    { return []Finding{r.Ratio, r.Difference} }

// sum draws the findings together.
func (c *Claim) sum() {
	var decisive, sizes []Finding
	for i := range c.Checks {
		decisive = append(decisive, c.Checks[i].decisive()...)
		sizes = append(sizes, c.Checks[i].sizes()...)
	}
	first := func(fs []Finding, v Word) *Finding {
		if i := slices.IndexFunc(fs, func(f Finding) bool { return f.Verdict == v }); i >= 0 {
			return &fs[i]
		}
		return nil
	}
	of := fmt.Sprintf("%d of %s", count(decisive, Confirmed), Count(judged(decisive), "check"))
	if f := first(decisive, Contradicted); f != nil {
		c.Verdict = Contradicted
		c.Sentence = "It does not hold here: " + f.Reason + "."
		if n := count(decisive, Confirmed); n > 0 {
			c.Sentence = fmt.Sprintf("It does not hold here as a whole (%s does): %s.", of, f.Reason)
		}
		return
	}
	if f := first(decisive, Inconclusive); f != nil {
		c.Verdict, c.Needs = Inconclusive, f.Needs
		c.Sentence = "This run cannot tell: " + f.Reason + more(f.Needs) + "."
		return
	}
	if judged(decisive) == 0 {
		c.Verdict = NotComparable
		c.Sentence = "It was not judged: nothing of it is measured."
		if f := first(decisive, NotComparable); f != nil {
			c.Sentence = "It was not judged: " + f.Reason + "."
		}
		return
	}
	c.Verdict = DirectionOnly
	switch {
	case first(sizes, Contradicted) != nil:
		c.Sentence = "The direction holds here, the published size does not: " + first(sizes, Contradicted).Reason + "."
	case first(sizes, Inconclusive) != nil:
		f := first(sizes, Inconclusive)
		c.Sentence = "The direction holds here, the size is not settled: " + f.Reason + more(f.Needs) + "."
	default:
		c.Verdict = Confirmed
		c.Sentence = fmt.Sprintf("It holds here (%s).", of)
	}
	if n := count(decisive, NotComparable); n > 0 {
		c.Sentence += fmt.Sprintf(" %s could not be judged.", capital(Count(n, "check")))
	}
}

func count(fs []Finding, v Word) (n int) {
	for _, f := range fs {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

func judged(fs []Finding) int {
	return len(fs) - count(fs, "") - count(fs, NotComparable)
}

func more(needs int) string {
	if needs <= 0 || needs > MostWorthwhile {
		return ""
	}
	return fmt.Sprintf("; about %s would", Count(needs, "more block"))
}
