package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// mostNamed is the number of primary comparisons up to which the headline
// tells of one; of more it tells how many.
const mostNamed = 5

func (a *Analysis) headline() string {
	p := a.Manifest.Study.Primary
	if why := a.Trials.Refusal(); why != "" && !a.Decided() && (a.Trials.Valid == 0 || a.Manifest.Outcome == "refused") {
		return "Nothing is decided: " + why + "."
	}
	if len(a.primary) == 0 {
		if why, out := a.Manifest.LeftOut[p.Arm]; out {
			why, _, _ = strings.Cut(why, "\n") // a failed build says much
			return fmt.Sprintf("Nothing is decided, since %s, which the study decides on, took no part: %s.", p.Arm, why)
		}
		if m := a.Primary(); m != nil && m.Withheld != "" {
			return fmt.Sprintf("Nothing is decided, since %s is not shown in workload %s: %s.", parenthesised(m.Metric), p.Workload, m.Withheld)
		}
		return fmt.Sprintf("Nothing is decided: no valid pair of trials for %s in workload %s yet.", p.Metric, p.Workload)
	}
	if c := a.claimed(); c != nil {
		return a.describeComparison(c, a.against(c)) + a.unpaired(c)
	}
	if len(a.primary) > mostNamed {
		return a.countOutcomes() + a.unpaired(nil)
	}
	c := a.largest()
	return a.describeComparison(c, "") + a.unpaired(c)
}

// unpaired names the arms that the study is to decide on and that have no pair of
// trials with the control, but for the one that is told of.
func (a *Analysis) unpaired(told *Comparison) string {
	var names []string
	for _, c := range a.primary {
		if c.N == 0 && c != told {
			names = append(names, a.Called(c.Arm))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " Not compared: " + strings.Join(names, ", ") + "."
}

// claimed is the primary comparison that the study's first claim speaks of,
// or the only one.
func (a *Analysis) claimed() *Comparison {
	if len(a.primary) == 1 {
		return a.primary[0]
	}
	for _, cl := range a.Claims {
		for _, r := range cl.Checks {
			if r.Check.Kind != study.Effect || r.Against != a.Manifest.Study.Control {
				continue
			}
			for _, c := range a.primary {
				if c.Arm == r.Check.Arm && len(a.primary) <= mostNamed {
					return c
				}
			}
		}
	}
	return nil
}

// largest is the primary comparison with the largest effect that was told
// apart, or the first one.
func (a *Analysis) largest() *Comparison {
	best := a.primary[0]
	for _, c := range a.primary[1:] {
		if c.Told() && (!best.Told() || math.Abs(c.Effect.Effect) > math.Abs(best.Effect.Effect)) {
			best = c
		}
	}
	return best
}

// mostWords is how long a headline may be.
const mostWords = 25

// describeComparison says one comparison, and what follows from it: what the arm costs, then how sure
// that is. It leaves out the control, and then titles, where the words are too many.
func (a *Analysis) describeComparison(c *Comparison, then string) string {
	if in := a.resolved(c); in != nil {
		c = in
	}
	arm, than := brief(a.Called(c.Arm)), " than with "+brief(a.Called(c.Against))
	text := a.sentence(c, arm, than) + then
	for _, shorter := range []string{arm, c.Arm} {
		if len(strings.Fields(text)) > mostWords {
			text = a.sentence(c, shorter, "") + then
		}
	}
	return text
}

// brief is a title without what it says in parentheses.
func brief(title string) string {
	head, _, _ := strings.Cut(title, " (")
	return head
}

// sentence says one comparison of an arm; than names what it is compared with.
func (a *Analysis) sentence(c *Comparison, arm, than string) string {
	what, other := parenthesised(c.Metric), "the control"
	if than != "" {
		other = strings.TrimPrefix(than, " than with ")
	}
	switch {
	case c.Withheld != "":
		return fmt.Sprintf("With %s, %s is not compared: %s.", arm, what, c.Withheld)
	case c.Verdict == stats.Equivalent:
		d := c.Deciding()
		return fmt.Sprintf("With %s, %s is within ±%s of %s (%s).", arm, what, c.thresholdText(), other, d.Range(c))
	case c.Note != "", c.Verdict == stats.Inconclusive:
		return fmt.Sprintf("Not decided: with %s, %s differs by %s (%s); %s.", arm, what, c.Figure(), c.Range(), c.needText())
	}
	text := fmt.Sprintf("With %s, %s%s %s", arm, c.cost(), than, c.sure())
	if c.Verdict == stats.Small {
		text += fmt.Sprintf(", less than the threshold of %s", c.thresholdText())
	}
	return text + "."
}

// cost says how much more or less an arm takes.
func (c *Comparison) cost() string {
	size := Show(c.Metric, math.Abs(c.Difference.Value))
	if !c.apart() {
		size = strings.TrimLeft(c.Figure(), "+-")
	}
	more, longer, higher := "more", "longer", "higher"
	if c.Effect.Effect < 0 {
		more, longer, higher = "less", "shorter", "lower"
	}
	switch {
	case c.Metric.Name == "loop_time":
		return fmt.Sprintf("the handler takes %s %s CPU", size, more)
	case c.Metric.Name == "cpu_per_request":
		return fmt.Sprintf("a request takes %s %s CPU", size, more)
	case strings.HasPrefix(c.Metric.Name, "response_") || strings.HasPrefix(c.Metric.Name, "service_"):
		return fmt.Sprintf("%s is %s %s", parenthesised(c.Metric), size, longer)
	}
	return fmt.Sprintf("%s is %s %s", parenthesised(c.Metric), size, higher)
}

// apart says whether the absolute difference lies on the side of the effect, whole.
func (c *Comparison) apart() bool {
	i := c.Difference.Interval
	return i.Bounded() && i.Lo*c.Effect.Effect > 0 && i.Hi*c.Effect.Effect > 0
}

// sure is the interval of what cost says, in parentheses, with its unit where it is
// another one.
func (c *Comparison) sure() string {
	if !c.apart() {
		return "(" + c.Range() + ")"
	}
	i := c.Difference.Interval
	least, most := Show(c.Metric, math.Abs(i.Lo)), Show(c.Metric, math.Abs(i.Hi))
	if math.Abs(i.Lo) > math.Abs(i.Hi) {
		least, most = most, least
	}
	_, of, _ := strings.Cut(Show(c.Metric, math.Abs(c.Difference.Value)), " ")
	if bare := " " + of; of != "" && strings.HasSuffix(least, bare) && strings.HasSuffix(most, bare) {
		least, most = strings.TrimSuffix(least, bare), strings.TrimSuffix(most, bare)
	}
	return fmt.Sprintf("(%s to %s)", least, most)
}

// resolved is what the loop in process tells where the load could not; nil if nothing.
func (a *Analysis) resolved(c *Comparison) *Comparison {
	for _, r := range a.Resolutions {
		if r.Workload == c.Workload && r.Arm == c.Arm {
			return r.InProcess
		}
	}
	return nil
}

// needText says what would decide: blocks, a quieter machine, or the loop in process.
func (c *Comparison) needText() string {
	switch {
	case c.Needs <= MostWorthwhile:
		return fmt.Sprintf("about %s would decide", unit.Plural(c.Needs, "more block"))
	case strings.HasPrefix(c.Metric.Name, "loop_"):
		return "a quieter machine would decide, no reasonable number of blocks"
	}
	return "a quieter machine or the loop in process would decide, no reasonable number of blocks"
}

// MostWorthwhile is the number of further blocks beyond which asking for them
// is no advice.
const MostWorthwhile = 1000

// against says what became of the figure published for the comparison: that of the first
// check on the same metric, else of the first one on the same arm.
func (a *Analysis) against(c *Comparison) string {
	published := func(r *CheckResult) float64 { d, _ := publishedDifference(r.Check); return d }
	var best *CheckResult
	for i := range a.Claims {
		for j := range a.Claims[i].Checks {
			r := &a.Claims[i].Checks[j]
			if r.Check.Kind != study.Effect || r.Check.Arm != c.Arm || r.Against != c.Against || published(r) == 0 {
				continue
			}
			if best == nil || r.Metric.Name == c.Metric.Name && best.Metric.Name != c.Metric.Name {
				best = r
			}
		}
	}
	if best == nil {
		return ""
	}
	what := Show(best.Metric, published(best))
	if best.Metric.Name != c.Metric.Name {
		what += " of " + parenthesised(best.Metric)
	}
	became := string(best.Difference.Verdict)
	if best.Difference.Verdict == Inconclusive || became == "" {
		became = "not settled"
	}
	return fmt.Sprintf(" The published %s is %s.", what, became)
}

// countOutcomes says how many arms came out how.
func (a *Analysis) countOutcomes() string {
	var higher, lower, same, open int
	var top, bottom *Comparison
	for _, c := range a.primary {
		switch {
		case !c.Told() && c.Verdict == stats.Equivalent:
			same++
			continue
		case !c.Told():
			open++
			continue
		case c.Effect.Effect > 0:
			higher++
		default:
			lower++
		}
		if top == nil || c.Effect.Effect > top.Effect.Effect {
			top = c
		}
		if bottom == nil || c.Effect.Effect < bottom.Effect.Effect {
			bottom = c
		}
	}
	text := fmt.Sprintf("%s: %d of %s higher than %s", titled(a.primary[0].Metric), higher, unit.Plural(len(a.primary), "arm"), brief(a.Called(a.primary[0].Against)))
	for i, n := range []int{lower, same, open} {
		if n > 0 {
			text += fmt.Sprintf(", %d %s", n, []string{"lower", "no different", "undecided"}[i])
		}
	}
	if top != nil && higher > 0 {
		text += fmt.Sprintf("; highest %s (%s)", top.Arm, top.Figure())
	}
	if bottom != nil && lower > 0 {
		text += fmt.Sprintf("; lowest %s (%s)", bottom.Arm, bottom.Figure())
	}
	return text + "."
}
