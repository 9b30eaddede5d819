package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/tarehq/tare/doc"
)

// leastRoom is the narrowest column of text.
const leastRoom = 30

// Wrap prints text behind a label, broken between words so that lines keep
// within width, further lines under the first.
func Wrap(w io.Writer, label, text string, width int) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(label))
	room := max(leastRoom, width-len(indent))
	line := label
	used := 0
	for word := range strings.FieldsSeq(doc.Printable(text)) {
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

// AlignColumns aligns the cells of a table's rows. Its lines end where a further column
// would begin.
func AlignColumns(rows [][]string) []string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	w.Flush() // a strings.Builder takes everything
	return strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
}

// WrapBeside prints text at the end of a table's row, broken to fit the terminal, or below
// the row where there is too little room for it.
func WrapBeside(w io.Writer, row, text string, width int) {
	if room := width - utf8.RuneCountInString(row); room < min(leastRoom, utf8.RuneCountInString(text)) {
		fmt.Fprintln(w, strings.TrimRight(row, " "))
		row = "    "
	}
	Wrap(w, row, text, width)
}

// Texts are the errors' messages.
func Texts(errs []error) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// Warnings are the caveats of a result, as blocks of its page.
func Warnings(texts []string) []doc.Block {
	var all []doc.Block
	for _, text := range texts {
		all = append(all, doc.Warning{Text: doc.Plain(text)})
	}
	return all
}
