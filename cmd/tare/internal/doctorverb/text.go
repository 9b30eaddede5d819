package doctorverb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// diagnosisBlocks show the findings by price, then what is healthy and what no rule
// could judge.
func diagnosisBlocks(d *doctor.Diagnosis) []doc.Block {
	title := "diagnosis of " + d.Subject
	if d.Seconds > 0 {
		title += fmt.Sprintf(" over %.0f s", d.Seconds)
	}
	if d.Requests > 0 {
		title += ", " + unit.Number(float64(int(d.Requests))) + " requests"
	}
	out := []doc.Block{doc.Heading{Level: 1, Text: title}, doc.Paragraphf("%s", tally(d))}
	for i := range d.Findings {
		out = append(out, findingBlocks(i+1, &d.Findings[i])...)
	}
	var rest doc.Terms
	if len(d.Uncertain) > 0 {
		rest.Add("not certain", "%s: more than the threshold, but not by more than chance: a longer --for narrows it", priced(d.Uncertain, true))
	}
	if len(d.Cheap) > 0 {
		rest.Add("seen, cheap", "%s", priced(d.Cheap, false))
	}
	if len(d.Healthy) > 0 {
		rest.Add("healthy", "%s", strings.Join(d.Healthy, ", "))
	}
	for _, line := range blind(d.Blind) {
		rest.Add("not looked at", "%s", line)
	}
	return append(append(out, rest), cli.Warnings(d.Warnings)...)
}

// priced names what is there, with its price, and with its threshold if that is
// asked for.
func priced(all []doctor.Finding, threshold bool) string {
	var texts []string
	for _, f := range all {
		text := f.Rule
		switch p := f.Price; {
		case p == nil:
		case p.Share > 0:
			text += " " + unit.Format(p.Share, unit.Share) + " of " + p.Whole()
		default:
			text += " " + unit.Format(p.Value, p.Unit) + " " + p.Of
		}
		if threshold {
			text += " (fires at " + f.Threshold + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// blind names what was not looked at, once for each reason.
func blind(all []doctor.Blind) []string {
	type group struct{ rules, needs []string }
	groups := map[string]*group{}
	var order []string
	for _, b := range all {
		why := cmp.Or(b.Reason, "it was not gathered")
		g := groups[why]
		if g == nil {
			g = &group{}
			groups[why] = g
			order = append(order, why)
		}
		g.rules = append(g.rules, b.Rule)
		if need := string(b.Needs); !slices.Contains(g.needs, need) {
			g.needs = append(g.needs, need)
		}
	}
	var lines []string
	for _, why := range order {
		g := groups[why]
		lines = append(lines, strings.Join(g.rules, ", ")+": needs "+strings.Join(g.needs, ", ")+": "+why)
	}
	return lines
}

// tally counts the findings, and the rules that could not tell: where those are
// many, no finding means little.
func tally(d *doctor.Diagnosis) string {
	text := "nothing was found"
	switch n := len(d.Findings); {
	case d.Inconclusive():
		text = "inconclusive: no findings, but that does not show health here"
	case perhaps(d):
		text = "inconclusive: nothing was found for certain"
	case n == 1:
		text = "one finding"
	case n > 1:
		text = fmt.Sprintf("%d findings, by price", n)
	}
	if n := len(d.Blind); n > 0 {
		text += fmt.Sprintf("; %d of %d rules could not decide", n, len(doctor.Rules()))
	}
	return text
}

// perhaps reports whether all that was found may be chance.
func perhaps(d *doctor.Diagnosis) bool { return len(d.Findings) == 0 && len(d.Uncertain) > 0 }

// findingBlocks show a finding: its price, evidence and remedy.
func findingBlocks(n int, f *doctor.Finding) []doc.Block {
	var facts doc.Terms
	if f.Price != nil {
		facts.Add("price", "%s", f.Price.String())
	}
	name := "evidence"
	for _, row := range f.Evidence {
		facts.Add(name, "%s", row.String())
		name = ""
	}
	facts.Add("threshold", "%s", f.Threshold)
	facts.Add("remedy", "%s", f.Remedy)
	facts.Add("verify", "%s", f.Verify)
	return []doc.Block{
		doc.Heading{Level: 3, Text: fmt.Sprintf("%d. %s, %s: %s", n, f.Rule, f.Severity, f.Title)},
		facts,
	}
}
