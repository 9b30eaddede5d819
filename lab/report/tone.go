package report

import (
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

// A tone is how a verdict looks, whatever it was about: its class on the
// page, which gives it its sign, and its style in the terminal.
type tone string

const (
	yes    tone = "yes"
	partly tone = "partly"
	no     tone = "no"
	open   tone = "open"
	none   tone = "none"
)

var signs = map[tone]string{yes: "✓", partly: "◐", no: "✗", open: "?", none: "–"}

// mark is the word in this tone on the page.
func (t tone) mark(word string) mark { return mark{Symbol: signs[t], Word: word, Class: string(t)} }

func (t tone) style() style {
	switch t {
	case yes:
		return green
	case no:
		return red
	case none:
		return dim
	}
	return yellow
}

func toneOfWord(w verdict.Word) tone {
	switch w {
	case verdict.Confirmed:
		return yes
	case verdict.DirectionOnly:
		return partly
	case verdict.Contradicted:
		return no
	case verdict.Inconclusive:
		return open
	}
	return none
}

func toneOfOutcome(o bound.Outcome) tone {
	switch o {
	case bound.Held:
		return yes
	case bound.Failed:
		return no
	case bound.Inconclusive:
		return open
	}
	return none
}

func toneOfNearness(n verdict.Nearness) tone {
	switch n {
	case verdict.Within:
		return yes
	case verdict.Beyond:
		return no
	}
	return open
}
