package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// accuracyFold says how near attribution came to what arms count themselves.
func accuracyFold(a *verdict.Analysis) doc.Fold {
	if len(a.Accuracies) == 0 {
		return doc.Fold{}
	}
	t := doc.Table{Caption: "Charged against counted", Unlabelled: true, Columns: []doc.Column{
		{Head: "arm", Key: true}, {Head: "part", Key: true}, {Head: "what", Key: true}, {Head: "source"}, {Head: "truth", Right: true}, {Head: "charged", Right: true},
		{Head: "owner", Optional: true}, {Head: "off, 90 % interval", Right: true}, {Head: "allowed", Right: true}, {Head: "n", Right: true}, {Head: "verdict"}}}
	for i := range a.Accuracies {
		x := &a.Accuracies[i]
		for k := range x.By {
			h := &x.By[k]
			t.Rows = append(t.Rows, doc.Row{Cells: append(doc.Cells(loadedArm(a, x), x.Part, string(x.Quantity), string(h.Source), amount(x, h.Truth),
				amount(x, h.Attributed), h.Owner, offText(x, h), "±"+amount(x, x.Band), fmt.Sprint(h.N)), doc.Cell{Text: string(h.Verdict), Tone: toneOf(h.Verdict)})})
		}
	}
	f := doc.Fold{Summary: "Attribution against the arms’ own count", ID: "accuracy", Blocks: []doc.Block{doc.Note(accuracyNote(a)), t}}
	if apart := apartTexts(a); len(apart) > 0 {
		f.Blocks = append(f.Blocks, doc.Heading{Level: 3, Text: "Where two sources looked at the same requests"}, listOf(apart))
	}
	return f
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
