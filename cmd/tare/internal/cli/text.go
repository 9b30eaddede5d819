package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/stats/unit"
)

// LeastRoom is the narrowest column of text.
const LeastRoom = 30

// Wrap prints text behind a label, broken between words so that lines keep
// within width, further lines under the first.
func Wrap(w io.Writer, label, text string, width int) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(label))
	room := max(LeastRoom, width-len(indent))
	line := label
	used := 0
	for word := range strings.FieldsSeq(report.Printable(text)) {
		n := len([]rune(word))
		if used > 0 && used+1+n > room {
			fmt.Fprintln(w, line)
			line, used = indent, 0
		}
		if used > 0 {
			line += " "
			used++
		}
		line += word
		used += n
	}
	fmt.Fprintln(w, line)
}

// leastName is the room below which a name is not put beside its figures.
const leastName = 16

// PrintNamed prints figures and what they are of, cut to the terminal's width: beside
// them, or below where there is too little room.
func PrintNamed(w io.Writer, figures, name string, width int) {
	if width-utf8.RuneCountInString(figures) < leastName {
		fmt.Fprintln(w, strings.TrimRight(figures, " "))
		figures = "    "
	}
	fmt.Fprintln(w, figures+report.Printable(Fit(name, width-utf8.RuneCountInString(figures))))
}

// Fit cuts text to a number of columns; where there are too few for a name, to as
// many as one takes.
func Fit(text string, columns int) string {
	columns = max(columns, leastName)
	runes := []rune(text)
	if len(runes) <= columns {
		return text
	}
	return string(runes[:columns-1]) + "…"
}

// Count is a number of things.
func Count(n uint64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return unit.Format(float64(n), unit.Count) + " " + noun
}

// Texts are the errors' messages.
func Texts(errs []error) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
