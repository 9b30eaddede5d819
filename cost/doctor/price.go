package doctor

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// Price is what something costs, with its 95 % interval.
type Price struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Unit  string  `json:"unit"`  // a base unit of package unit
	Per   string  `json:"per"`   // "request", "second", "profile", or "" of what stays
	Of    string  `json:"of"`    // "CPU", "waiting", "memory" …
	Share float64 `json:"share"` // of all the CPU or time that requests take, 0 if unknown
}

func (p Price) String() string {
	text := unit.Format(p.Value, p.Unit)
	if p.Low < p.High {
		text += " [" + unit.Format(max(0, p.Low), p.Unit) + ", " + unit.Format(p.High, p.Unit) + "]"
	}
	switch {
	case p.Unit == unit.Count:
		text += " " + p.Of
	case p.Of != "":
		text += " of " + p.Of
	}
	if p.Per != "" {
		text += " per " + p.Per
	}
	if p.Share > 0 {
		text += ", " + unit.Format(p.Share, unit.Share) + " of " + p.Whole()
	}
	return text
}

// Whole says what Share is of.
func (p Price) Whole() string {
	switch p.Of {
	case "CPU":
		return "the CPU"
	case "waiting":
		return "a request's time"
	}
	return "the heap in use"
}

// times is the price divided by n, as from a whole window to one request.
func (p Price) times(f float64) Price {
	p.Value, p.Low, p.High = p.Value*f, p.Low*f, p.High*f
	return p
}

// sum adds up the stacks that match, the instrument's own left out.
func sum(stacks []cost.Stack, m symptom.Match) cost.Amount {
	var a cost.Amount
	for i := range stacks {
		if symptom.Instrument(stacks[i].Frames) || m != nil && m(stacks[i].Frames) < 0 {
			continue
		}
		a.Count += stacks[i].Count
		a.Value += stacks[i].Value
	}
	return a
}

// cpu is all that the service spent.
func (e *Evidence) cpu() cost.Amount { return sum(e.CPU, nil) }

// spent is the CPU of the stacks that match, and their part of the collector's
// background work, by the bytes that they allocated.
func (e *Evidence) spent(m symptom.Match) Price { return e.priced(sum(e.CPU, m), sum(e.Allocs, m)) }

// priced is the price of CPU and of bytes allocated.
func (e *Evidence) priced(own, bytes cost.Amount) Price {
	margin := own.Margin()
	value := own.Value
	if all := sum(e.Allocs, nil).Value; all > 0 {
		gc := sum(e.CPU, symptom.Background)
		share := bytes.Value / all
		value += gc.Value * share
		margin = math.Hypot(margin, gc.Margin()*share)
	}
	by, per := e.per()
	p := Price{Value: value, Low: value - margin, High: value + margin, Unit: unit.Nanoseconds, Per: per, Of: "CPU"}
	if whole := e.cpu().Value; whole > 0 {
		p.Share = value / whole
	}
	return p.times(1 / by)
}

// The least that is worth a word: a hundredth of what requests cost, and this
// much per request, or per second where nobody counted them.
const (
	leastShare      = 0.01
	leastPerRequest = 100.0 // ns
	leastPerSecond  = 1e6   // ns
	grave           = 0.25  // of what requests cost
)

// weigh says how much a price matters, given the share of the whole below which
// it does not.
func weigh(p Price, whole, least float64) Severity {
	floor := leastPerSecond
	if p.Per == "request" {
		floor = leastPerRequest
	}
	bound := max(max(least, leastShare)*whole, floor)
	switch {
	case p.Value <= bound:
		return Cheap
	case p.Low <= bound:
		return Uncertain
	case p.Low > grave*whole:
		return Serious
	}
	return Warning
}

// weighCPU weighs a price against all CPU.
func (e *Evidence) weighCPU(p Price, least float64) Severity {
	by, _ := e.per()
	return weigh(p, e.cpu().Value/by, least)
}

// Row is a line of evidence.
type Row struct {
	What    string  `json:"what"`
	Where   string  `json:"where,omitempty"`   // file:line
	Package string  `json:"package,omitempty"` // of What, as [cost.Frame.Package] has it
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"` // a base unit of package unit, or Words
}

// Words is the unit of a row that has no value.
const Words = "words"

func note(text string) Row { return Row{What: text, Unit: Words} }

func (r Row) String() string {
	text := r.What
	if r.Where != "" {
		text += " (" + r.Where + ")"
	}
	if r.Unit == Words {
		return text
	}
	return text + ": " + unit.Format(r.Value, r.Unit)
}

// places says from where the stacks that match came, the largest first: the
// innermost function of the program's own, or of a module's, that called for it.
func (e *Evidence) places(stacks []cost.Stack, m symptom.Match, base string) []Row {
	return e.largest(stacks, base, func(frames []cost.Frame) (Row, bool) {
		at := m(frames)
		if at < 0 {
			return Row{}, false
		}
		return caller(frames, at), true
	})
}

// largest adds stacks up by what names them, if it does, the largest first.
func (e *Evidence) largest(stacks []cost.Stack, base string, name func([]cost.Frame) (Row, bool)) []Row {
	by, _ := e.per()
	sums := map[Row]float64{}
	for i := range stacks {
		if row, ok := name(stacks[i].Frames); ok && !symptom.Instrument(stacks[i].Frames) {
			sums[row] += stacks[i].Value
		}
	}
	rows := make([]Row, 0, len(sums))
	for row, v := range sums {
		row.Value, row.Unit = v/by, base
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.What, b.What), cmp.Compare(a.Where, b.Where))
	})
	return rows[:min(len(rows), 3)]
}

// caller finds who called for what frame at does: the next frame outward that is
// not the standard library's.
func caller(frames []cost.Frame, at int) Row {
	for _, f := range frames[at:] {
		if !f.Standard() {
			return Row{What: f.Name(), Where: shortPlace(f), Package: f.Package()}
		}
	}
	owner, _ := cost.Charge(frames)
	return Row{What: owner.Name, Where: owner.Where()}
}

// shortPlace is file:line with the file's last two elements.
func shortPlace(f cost.Frame) string {
	if f.File == "" {
		return ""
	}
	return path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)) + ":" + strconv.Itoa(f.Line)
}
