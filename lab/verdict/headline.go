package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

const (
	mostNamed    = 5    // primary comparisons up to which a headline tells of one; of more it tells how many
	mostWords    = 25   // in a headline
	secondChance = 0.01 // p-value at most, where the loop stands in for a primary comparison that decides nothing
)

// What a headline leaves out where it has too many words: each step that of the ones before, too.
const (
	withoutControl    = 1 + iota // what the arm is compared with
	withoutAsides                // what metrics say after a comma or in parentheses
	withNames                    // titles of arms
	withoutTail                  // what would decide, and which arms have no pair
	withPublishedName            // the title of another metric that a figure was published for
	withMetricName               // the title of the metric, for the words of its name
	shortest                     // how many arms have no pair, and that other metric
)

// fit is what say says with as few steps as it takes to be short enough.
func fit(say func(step int) string) string {
	text := say(0)
	for step := 1; step <= shortest && len(strings.Fields(text)) > mostWords; step++ {
		text = say(step)
	}
	return text
}

func (a *Analysis) headline() string {
	if why := a.undecided(); why != "" {
		words := strings.Fields("Nothing is decided" + why + ".")
		if len(words) > mostWords { // the report has the whole
			words = append(words[:mostWords-1], "…")
		}
		return strings.Join(words, " ")
	}
	c := a.subject()
	return fit(func(step int) string {
		if c == nil {
			return a.countOutcomes(step) + a.unpaired(c, step)
		}
		return a.describeComparison(c, step) + a.against(c, step) + a.unpaired(c, step)
	})
}

// undecided says why there is nothing to tell of, or "".
func (a *Analysis) undecided() string {
	p := a.Manifest.Study.Primary
	refused, why := a.Manifest.Outcome == "refused", a.Trials.Refusal()
	if refused && 2*a.Trials.Valid >= a.Trials.Total {
		why = a.lagging
	}
	if why != "" && !a.Decided() && (a.Trials.Valid == 0 || refused) {
		return ": " + why
	}
	if len(a.primary) > 0 {
		return ""
	}
	if why, out := a.Manifest.LeftOut[p.Arm]; out {
		why, _, _ = strings.Cut(why, "\n") // a failed build says much
		return fmt.Sprintf(", since %s, which the study decides on, took no part: %s", p.Arm, why)
	}
	if m := a.Primary(); m != nil && m.Withheld != "" {
		return fmt.Sprintf(", since %s is not shown in workload %s: %s", parenthesised(m.Metric), p.Workload, m.Withheld)
	}
	return fmt.Sprintf(": no valid pair of trials for %s in workload %s yet", inWords.Replace(p.Metric), p.Workload)
}

// unpaired names the arms that the study is to decide on and that have no pair of
// trials with the control, but for the one that is told of, if any.
func (a *Analysis) unpaired(told *Comparison, step int) string {
	var names []string
	for _, c := range a.primary {
		if c.N == 0 && c != told {
			names = append(names, a.calledAt(c.Arm, step))
		}
	}
	switch {
	case len(names) == 0 || step >= shortest:
		return ""
	case step >= withoutTail:
		return " Not compared: " + unit.Plural(len(names), "arm") + "."
	}
	return " Not compared: " + strings.Join(names, ", ") + "."
}

// subject is the primary comparison that the study's first claim speaks of, else the largest;
// nil where there are too many.
func (a *Analysis) subject() *Comparison {
	if len(a.primary) > mostNamed {
		return nil
	}
	for _, cl := range a.Claims {
		for _, r := range cl.Checks {
			for _, c := range a.primary {
				if r.Check.Kind == study.Effect && r.Against == a.Manifest.Study.Control && c.Arm == r.Check.Arm {
					return c
				}
			}
		}
	}
	return a.largest()
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

// describeComparison says one comparison: what the arm costs, then how sure that is.
func (a *Analysis) describeComparison(c *Comparison, step int) string {
	if in := a.resolved(c); in != nil {
		c = in
	}
	arm, what, than, other, tail := a.calledAt(c.Arm, step), metricAt(c.Metric, step), "", "the control", ""
	if step < withoutControl {
		other = a.calledAt(c.Against, step)
		than = " than with " + other
	}
	switch {
	case c.Withheld != "":
		return fmt.Sprintf("With %s, %s is not compared: %s.", arm, what, c.Withheld)
	case c.Verdict == stats.Equivalent:
		d := c.Deciding()
		return fmt.Sprintf("With %s, %s is within ±%s of %s (%s).", arm, what, c.thresholdText(), other, d.Range(c))
	case c.Note != "", c.Verdict == stats.Inconclusive:
		if step < withoutTail {
			tail = "; " + c.needText()
		}
		return fmt.Sprintf("Not decided: with %s, %s differs by %s (%s)%s.", arm, what, c.Figure(), c.Range(), tail)
	}
	if c.Verdict == stats.Small && step < withoutTail {
		tail = ", less than the threshold of " + c.thresholdText()
	}
	return fmt.Sprintf("With %s, %s%s %s%s.", arm, c.cost(what), than, c.sure(), tail)
}

// calledAt is a title without what it says in parentheses, or the arm's name.
func (a *Analysis) calledAt(arm string, step int) string {
	if step < withNames {
		arm, _, _ = strings.Cut(a.Called(arm), " (")
	}
	return arm
}

// inWords makes words of a metric's name in study files.
var inWords = strings.NewReplacer("_", " ", "cpu", "CPU", "rss", "RSS", "pss", "PSS", "gc", "GC", "p9999", "p99.99", "p999", "p99.9")

// metricAt is what a headline calls a metric.
func metricAt(m study.Metric, step int) string {
	switch {
	case step >= withMetricName:
		return inWords.Replace(m.Name)
	case step >= withoutAsides:
		if head, aside, _ := strings.Cut(m.Title, ", "); strings.Contains(aside, " ") { // p95 is none
			return head
		}
	}
	return parenthesised(m)
}

// cost says how much more or less an arm takes of what the metric is called.
func (c *Comparison) cost(what string) string {
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
		return fmt.Sprintf("%s is %s %s", what, size, longer)
	}
	return fmt.Sprintf("%s is %s %s", what, size, higher)
}

// apart reports whether the absolute difference lies on the side of the effect, whole.
func (c *Comparison) apart() bool {
	i := c.decided().Interval
	return i.Bounded() && i.Lo*c.Effect.Effect > 0 && i.Hi*c.Effect.Effect > 0
}

// sure is the interval of what cost says, in parentheses, with its unit where it is
// another one.
func (c *Comparison) sure() string {
	if !c.apart() {
		return "(" + c.Deciding().Range(c) + ")"
	}
	i := c.decided().Interval
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

// resolved is what the loop in process tells where the load could not; nil if nothing. It is a
// second chance to be wrong, so a headline asks for more than a verdict does.
func (a *Analysis) resolved(c *Comparison) *Comparison {
	for _, r := range a.Resolutions {
		if in := r.InProcess; r.Workload == c.Workload && r.Arm == c.Arm && in.Effect.P <= secondChance {
			return in
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
func (a *Analysis) against(c *Comparison, step int) string {
	published := func(r *CheckResult) float64 { d, _ := publishedDifference(r.Check); return d }
	var best *CheckResult
	for i := range a.Claims {
		for j := range a.Claims[i].Checks {
			r := &a.Claims[i].Checks[j]
			if r.Check.Kind == study.Effect && r.Check.Arm == c.Arm && r.Against == c.Against && published(r) != 0 &&
				(best == nil || r.Metric.Name == c.Metric.Name && best.Metric.Name != c.Metric.Name) {
				best = r
			}
		}
	}
	if best == nil {
		return ""
	}
	what := Show(best.Metric, published(best))
	if best.Metric.Name != c.Metric.Name && step < shortest {
		what += " of " + metricAt(best.Metric, step+withMetricName-withPublishedName)
	}
	became := string(best.Difference.Verdict)
	if best.Difference.Verdict == Inconclusive || became == "" {
		became = "not settled"
	}
	return fmt.Sprintf(" The published %s is %s.", what, became)
}

// countOutcomes says how many arms came out how, and the largest effect.
func (a *Analysis) countOutcomes(step int) string {
	var count [4]int // higher, lower, no different, undecided
	for _, c := range a.primary {
		i := 3
		switch {
		case c.Told() && c.Effect.Effect > 0:
			i = 0
		case c.Told():
			i = 1
		case c.Verdict == stats.Equivalent:
			i = 2
		}
		count[i]++
	}
	what := metricAt(a.primary[0].Metric, step)
	text := fmt.Sprintf("%s%s: %d of %s higher than %s", strings.ToUpper(what[:1]), what[1:], count[0], unit.Plural(len(a.primary), "arm"), a.calledAt(a.primary[0].Against, step))
	for i, outcome := range []string{"lower", "no different", "undecided"} {
		if n := count[i+1]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, outcome)
		}
	}
	if c := a.largest(); c.Told() && c.Effect.Effect > 0 {
		text += fmt.Sprintf("; highest %s, %s (%s)", c.Arm, c.Figure(), c.Deciding().Range(c))
	} else if c.Told() {
		text += fmt.Sprintf("; lowest %s, %s (%s)", c.Arm, c.Figure(), c.Deciding().Range(c))
	}
	return text + "."
}
