package report

import (
	"fmt"
	"math"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// htmlAccount is who spent what under one workload, by one source.
type htmlAccount struct {
	Index             int
	Title, Note       string
	Arms              []string
	Self, Bytes, Wait *htmlOwners
	Causes            []causeBar
	Legend            []causeKey
}

// htmlOwners is a table of owners by arms.
type htmlOwners struct {
	Caption string
	Heads   []string
	Rows    []htmlOwner
	More    string // what is not shown
	Sums    []string
}

type htmlOwner struct {
	Name, Kind, Where string
	Cells             []htmlPartCell
}

type htmlPartCell struct {
	Value, Small string
	Change       string // against the control
	Mark         mark
}

// causeBar is an arm's CPU time by cause.
type causeBar struct {
	Arm, Total string
	Parts      []causePart
	Label      string
}

// causePart is a box of a bar, in thousandths of the longest.
type causePart struct {
	Class    string
	X, Width float64
	Title    string
}

// causeKey says which colour a cause has.
type causeKey struct{ Class, Name string }

// drawnCauses is how many causes have a colour of their own.
const drawnCauses = 8

func newHTMLAccount(a *verdict.Account) htmlAccount {
	out := htmlAccount{Title: accountTitle(a), Note: accountNote(a)}
	for _, s := range a.Arms {
		out.Arms = append(out.Arms, s.Arm)
	}
	shown, rest := weighty(a)
	for _, t := range tablesOf(a) {
		table := newHTMLOwners(a, t, shown, rest)
		switch {
		case a.Source == study.Trace:
			out.Wait = table
		case out.Self == nil:
			out.Self = table
		default:
			out.Bytes = table
		}
	}
	if a.Source != study.Trace {
		out.Causes, out.Legend = causeBars(a)
	}
	return out
}

func newHTMLOwners(a *verdict.Account, t ownerTable, shown, rest []verdict.Owner) *htmlOwners {
	out := &htmlOwners{Caption: t.title}
	for i := range a.Arms {
		out.Heads = append(out.Heads, a.Arms[i].Arm)
		out.Sums = append(out.Sums, t.sum(&a.Arms[i]))
	}
	for k := range shown {
		o := &shown[k]
		row, any := htmlOwner{Name: o.Name, Kind: o.Kind, Where: o.Where}, false
		for i := range o.In {
			cell := htmlPartCell{}
			cell.Value, _ = t.cell(&o.In[i])
			any = any || cell.Value != "–"
			if t.changes {
				cell.Change, cell.Mark = changeOf(&o.In[i])
			}
			row.Cells = append(row.Cells, cell)
		}
		if any {
			out.Rows = append(out.Rows, row)
		}
	}
	if len(rest) > 0 {
		out.More = verdict.Count(len(rest), "other owner")
		for i := range a.Arms {
			sum := sumOf(rest, i)
			if text, _ := t.cell(&sum); text != "–" {
				out.More += fmt.Sprintf(", %s in %s", text, a.Arms[i].Arm)
			}
		}
	}
	return out
}

// changeOf is what an owner spends more or less than in the control.
func changeOf(p *verdict.Part) (text string, m mark) {
	if p.Change == nil {
		return "", m
	}
	text = unit.Format(p.Change.Value, unit.Nanoseconds)
	if p.Change.Value > 0 {
		text = "+" + text
	}
	switch {
	case !p.Changed():
		m = mark{Word: "undecided", Symbol: "?", Class: "open"}
	case p.Change.Value > 0:
		m = mark{Word: "more", Symbol: "▲", Class: "worse"}
	default:
		m = mark{Word: "less", Symbol: "▼", Class: "better"}
	}
	return text, m
}

// causeBars draws every arm's causes on one scale; the causes in the order of
// the first arm that has them.
func causeBars(a *verdict.Account) ([]causeBar, []causeKey) {
	var keys []causeKey
	class := map[string]string{}
	most := 0.0
	for _, s := range a.Arms {
		most = max(most, s.CPU.Value)
		for _, c := range s.Causes {
			if class[c.Cause] != "" || c.Value < slight*s.CPU.Value || len(keys) == drawnCauses {
				continue
			}
			class[c.Cause] = fmt.Sprintf("k%d", len(keys))
			keys = append(keys, causeKey{class[c.Cause], c.Cause})
		}
	}
	if most == 0 {
		return nil, nil
	}
	var bars []causeBar
	other := false
	for _, s := range a.Arms {
		bar := causeBar{Arm: s.Arm, Total: unit.Format(s.CPU.Value, unit.Nanoseconds), Label: s.Arm + ": "}
		x, rest := 0.0, 0.0
		add := func(class string, c cost.Share) {
			w := 1000 * c.Value / most
			bar.Parts = append(bar.Parts, causePart{class, round1(x), round1(w), causeText(c, s.CPU.Value)})
			bar.Label += causeText(c, s.CPU.Value) + "; "
			x += w
		}
		for _, k := range keys {
			for _, c := range s.Causes {
				if c.Cause == k.Name && c.Value > 0 {
					add(k.Class, c)
				}
			}
		}
		for _, c := range s.Causes {
			if class[c.Cause] == "" {
				rest += c.Value
			}
		}
		if rest > 0 {
			add("kx", cost.Share{Cause: "other", Value: rest})
			other = true
		}
		bars = append(bars, bar)
	}
	if other {
		keys = append(keys, causeKey{"kx", "other"})
	}
	return bars, keys
}

// round1 keeps a drawing's coordinates short.
func round1(v float64) float64 { return math.Round(v*10) / 10 }

// htmlAccuracy is attribution against what arms count themselves.
type htmlAccuracy struct {
	Note  string
	Rows  []htmlAccuracyRow
	Apart []string
}

type htmlAccuracyRow struct {
	Arm, Part, What, Truth           string
	Source, Charged, Off, Allowed, N string
	Owner                            string
	Verdict                          mark
}

func newHTMLAccuracy(a *verdict.Analysis) *htmlAccuracy {
	if len(a.Accuracies) == 0 {
		return nil
	}
	out := &htmlAccuracy{Note: accuracyNote(a), Apart: apartTexts(a)}
	for i := range a.Accuracies {
		x := &a.Accuracies[i]
		for k := range x.By {
			h := &x.By[k]
			out.Rows = append(out.Rows, htmlAccuracyRow{
				Arm: loadedArm(a, x), Part: x.Part, What: string(x.Quantity), Truth: amount(x, h.Truth),
				Source: string(h.Source), Charged: amount(x, h.Attributed), Off: offText(x, h), Allowed: "±" + amount(x, x.Band),
				N: fmt.Sprint(h.N), Owner: h.Owner, Verdict: toneOfNearness(h.Verdict).mark(string(h.Verdict)),
			})
		}
	}
	return out
}
