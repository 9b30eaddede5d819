package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// accuracy writes how near attribution came to what arms count themselves.
func (p *page) accuracy(a *verdict.Analysis) {
	if len(a.Accuracies) == 0 {
		return
	}
	p.heading("Attribution against the arms' own count")
	p.wrapIn(dim, "  ", accuracyNote(a))
	p.line("")
	if p.width < wide {
		p.accuracyList(a)
	} else {
		p.accuracyTable(a)
	}
	for _, text := range apartTexts(a) {
		p.wrapIn(dim, "  ", text)
	}
}

func (p *page) accuracyTable(a *verdict.Analysis) {
	cols := []column{{head: "arm", left: true, most: 20}, {head: "part", left: true}, {head: "what", left: true}, {head: "source", left: true},
		{head: "truth"}, {head: "charged"}, {head: "off, 90 % interval"}, {head: "allowed"}, {head: "", left: true}}
	var rows [][]item
	for i := range a.Accuracies {
		x := &a.Accuracies[i]
		for k := range x.By {
			h := &x.By[k]
			row := []item{{}, {}, {}}
			if k == 0 {
				row = []item{{text: loadedArm(a, x)}, {text: x.Part}, {text: string(x.Quantity)}}
			}
			rows = append(rows, append(row, item{text: string(h.Source)}, item{text: amount(x, h.Truth)}, item{text: amount(x, h.Attributed)}, item{text: offText(x, h)},
				item{text: "±" + amount(x, x.Band)}, item{string(h.Verdict), toneOfNearness(h.Verdict).style()}))
		}
	}
	p.table(cols, rows)
}

// accuracyList says the same where a table would not fit.
func (p *page) accuracyList(a *verdict.Analysis) {
	for i := range a.Accuracies {
		x := &a.Accuracies[i]
		p.wrap("  ", fmt.Sprintf("%s, %s, %s: ±%s are allowed", loadedArm(a, x), x.Part, x.Quantity, amount(x, x.Band)))
		for k := range x.By {
			h := &x.By[k]
			p.wrapIn(toneOfNearness(h.Verdict).style(), "    – ", fmt.Sprintf("%s %s for %s, off %s: %s", h.Source, amount(x, h.Attributed), amount(x, h.Truth), offText(x, h), h.Verdict))
		}
	}
}

// loadedArm names an arm, and its workload if it was profiled under several.
func loadedArm(a *verdict.Analysis, x *verdict.Accuracy) string {
	other := func(o verdict.Accuracy) bool { return o.Arm == x.Arm && o.Workload != x.Workload }
	if slices.ContainsFunc(a.Accuracies, other) {
		return x.Arm + ", " + x.Workload
	}
	return x.Arm
}

// accuracyNote says how it is judged, and what came of it.
func accuracyNote(a *verdict.Analysis) string {
	n, of := 0, 0
	for _, x := range a.Accuracies {
		for _, h := range x.By {
			of++
			if h.Verdict == verdict.Within {
				n++
			}
		}
	}
	t := a.Manifest.Study.Attribute.Truth
	text := fmt.Sprintf("%d of %d attributions are within bounds: the 90 %% interval of charged less truth, by captures, lies inside %s of the truth for CPU time",
		n, of, unit.Format(t.CPU, unit.Share))
	if t.Least > 0 {
		text += " or " + unit.Format(float64(t.Least), unit.Nanoseconds)
	}
	text += fmt.Sprintf(", %s for bytes", unit.Format(t.Bytes, unit.Share))
	if t.LeastBytes > 0 {
		text += " or " + unit.Format(float64(t.LeastBytes), unit.Bytes)
	}
	text += fmt.Sprintf(", %s for waiting. The truth of %q is what the arm without the parts costs; it may be off by what those may together.",
		unit.Format(t.Waiting, unit.Share), verdict.Rest)
	if lost := unattributed(a); len(lost) > 0 {
		text += " Not among them, since no capture counts: " + strings.Join(lost, ", ") + "."
	}
	return text
}

// unattributed are the arms, by source, that were to be profiled and of which no
// capture counts.
func unattributed(a *verdict.Analysis) []string {
	var lost []string
	for _, c := range a.Manifest.Study.Captures(a.Manifest.Seed) {
		seen := slices.ContainsFunc(a.Accounts, func(x verdict.Account) bool {
			return x.Workload == c.Workload && x.Source == c.Source &&
				slices.ContainsFunc(x.Arms, func(s verdict.Spent) bool { return s.Arm == c.Arm })
		})
		if text := fmt.Sprintf("%s under %s by %s", c.Arm, c.Workload, c.Source); !seen && !slices.Contains(lost, text) {
			lost = append(lost, text)
		}
	}
	slices.Sort(lost)
	return lost
}

// amount shows a quantity of an accuracy.
func amount(x *verdict.Accuracy, v float64) string {
	if x.Quantity == verdict.Memory {
		return unit.Format(v, unit.Bytes)
	}
	return unit.Format(v, unit.Nanoseconds)
}

func signedAmount(x *verdict.Accuracy, v float64) string {
	if v > 0 {
		return "+" + amount(x, v)
	}
	return amount(x, v)
}

// offText is how far off a source is; its owner, where the part's was not found.
func offText(x *verdict.Accuracy, h *verdict.Held) string {
	if h.Owner == "" && x.Part != verdict.Rest {
		return "no such owner"
	}
	if math.IsInf(h.Off.Interval.Width(), 0) {
		return signedAmount(x, h.Off.Value) + ", too few captures"
	}
	return signedAmount(x, h.Off.Interval.Lo) + " to " + signedAmount(x, h.Off.Interval.Hi)
}

// apartTexts say how far two sources are apart.
func apartTexts(a *verdict.Analysis) []string {
	var all []string
	for i := range a.Accuracies {
		x := &a.Accuracies[i]
		if x.Apart == nil {
			continue
		}
		text := fmt.Sprintf("%s, %s: off by %s less off by %s is %s", loadedArm(a, x), x.Part, study.Pprof, study.EBPF, signedAmount(x, x.Apart.Value))
		if w := x.Apart.Interval; !math.IsInf(w.Width(), 0) {
			text += fmt.Sprintf(" (%s to %s)", signedAmount(x, w.Lo), signedAmount(x, w.Hi))
		}
		all = append(all, text)
	}
	return all
}
