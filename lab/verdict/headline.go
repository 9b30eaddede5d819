package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
)

// mostNamed is the number of primary comparisons up to which the headline
// tells of one; of more it tells how many.
const mostNamed = 5

func (a *Analysis) headline() string {
	p := a.Manifest.Study.Primary
	if len(a.primary) == 0 {
		if why, out := a.Manifest.LeftOut[p.Arm]; out {
			why, _, _ = strings.Cut(why, "\n") // a failed build says much
			return fmt.Sprintf("Nothing is decided, since %s, which the study decides on, took no part: %s.", p.Arm, why)
		}
		if m := a.Primary(); m != nil && m.Withheld != "" {
			return fmt.Sprintf("Nothing is decided, since %s is not shown in workload %s: %s.", parenthesised(m.Metric), p.Workload, m.Withheld)
		}
		if t := a.Trials; t.Total > 0 && t.Valid == 0 {
			return fmt.Sprintf("Nothing is decided: none of %s counts, most often because %s.", Count(t.Total, "trial"), t.Invalid[0].Reason)
		}
		return fmt.Sprintf("Nothing is decided: no valid pair of trials for %s in workload %s yet.", p.Metric, p.Workload)
	}
	if c := a.claimed(); c != nil {
		return a.tell(c) + a.inProcess(c) + a.against(c) + a.unpaired(c) + "."
	}
	if len(a.primary) > mostNamed {
		return a.count() + a.unpaired(nil) + "."
	}
	c := a.largest()
	return a.tell(c) + a.unpaired(c) + "."
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
	return "; not compared: " + strings.Join(names, ", ")
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

// tell says one comparison as a clause.
func (a *Analysis) tell(c *Comparison) string {
	subject := fmt.Sprintf("%s with %s", titled(c.Metric), a.Called(c.Arm))
	control := a.Called(c.Against)
	switch {
	case c.Withheld != "":
		return fmt.Sprintf("%s is not compared with %s: %s", subject, control, c.Withheld)
	case c.Verdict == stats.Equivalent:
		return fmt.Sprintf("%s is no different from %s (within ±%s; %s)", subject, control, c.thresholdText(), c.size())
	case c.Note != "":
		return fmt.Sprintf("%s against %s is %s (%s); %s", subject, control, c.Note, c.size(), c.needText())
	case c.Verdict == stats.Inconclusive:
		return fmt.Sprintf("%s cannot be told from %s after %s (%s); %s", subject, control,
			Count(c.N, "block"), c.sizeAlone(), c.needText())
	}
	way := "higher"
	if c.Effect.Effect < 0 {
		way = "lower"
	}
	text := fmt.Sprintf("%s is %s %s than with %s here (%s)", subject, Show(c.Metric, math.Abs(c.Difference.Value)), way, control, c.size())
	if c.Verdict == stats.Small {
		text += fmt.Sprintf(", less than counts (±%s)", c.thresholdText())
	}
	return text
}

// inProcess adds what the loop in process tells where the load could not.
func (a *Analysis) inProcess(c *Comparison) string {
	for _, r := range a.Resolutions {
		if r.Workload != c.Workload || r.Arm != c.Arm {
			continue
		}
		d := r.InProcess.Difference
		return fmt.Sprintf("; in process it is %s a request (%s)", ShowSigned(r.InProcess.Metric, d.Value), SpanSigned(r.InProcess.Metric, d.Interval))
	}
	return ""
}

// needText says what would decide: blocks, a quieter machine, or the loop in process.
func (c *Comparison) needText() string {
	switch {
	case c.Needs <= MostWorthwhile:
		return fmt.Sprintf("about %s would decide", Count(c.Needs, "more block"))
	case strings.HasPrefix(c.Metric.Name, "loop_"):
		return "a quieter machine would decide, no reasonable number of blocks"
	}
	return "a quieter machine or the loop in process would decide, no reasonable number of blocks"
}

// MostWorthwhile is the number of further blocks beyond which asking for them
// is no advice.
const MostWorthwhile = 1000

// against says what became of the figure published for the comparison: by the
// check on the same metric, else by the first one on the same arm.
func (a *Analysis) against(c *Comparison) string {
	var best *CheckResult
	for i := range a.Claims {
		for j := range a.Claims[i].Checks {
			r := &a.Claims[i].Checks[j]
			if r.Check.Kind != study.Effect || r.Check.Arm != c.Arm || r.Against != c.Against || r.Difference.Verdict == "" {
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
	what := ShowSigned(best.Metric, best.PublishedDifference)
	if best.Metric.Name != c.Metric.Name {
		what += " of " + parenthesised(best.Metric)
	}
	switch v := best.Difference.Verdict; v {
	case Inconclusive:
		return fmt.Sprintf("; the published %s is not settled", what)
	default:
		return fmt.Sprintf("; the published %s is %s", what, v)
	}
}

// count says how many arms came out how.
func (a *Analysis) count() string {
	m := a.primary[0].Metric
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
	text := fmt.Sprintf("%s: of %s %d %s higher than %s, %d lower, %d no different, %d undecided",
		titled(m), Count(len(a.primary), "arm"), higher, are(higher), a.Called(a.primary[0].Against), lower, same, open)
	if bottom != nil && lower > 0 {
		text += fmt.Sprintf("; lowest %s (%s)", a.Called(bottom.Arm), bottom.Figure())
	}
	if top != nil && higher > 0 {
		text += fmt.Sprintf("; highest %s (%s)", a.Called(top.Arm), top.Figure())
	}
	return text
}
