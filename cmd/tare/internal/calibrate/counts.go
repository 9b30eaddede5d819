package calibrate

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

func markdown(sum noise.SelfTest) func(io.Writer) error {
	return func(w io.Writer) error { return doc.Markdown(w, countsPage(sum)) }
}

// countsPage is a table of what a self-test counted: a row of the program against itself,
// then one of each known difference.
func countsPage(sum noise.SelfTest) doc.Page {
	table := doc.Table{Caption: "Self-test", Unlabelled: true, Columns: []doc.Column{
		{Head: "CPU added to a request", Key: true}, {Head: "share of it"}, {Head: "studies", Right: true}, {Head: "found different"}, {Head: "interval holds it"},
	}}
	row := func(added, share string, n, told, holding int) {
		table.Rows = append(table.Rows, doc.Row{Cells: doc.Cells(added, share, unit.Number(float64(n)), ofAll(told, n), ofAll(holding, n))})
	}
	row("none", "–", sum.Studies, sum.Verdicts, sum.Studies-sum.Excluding)
	for _, p := range sum.Positive {
		row(unit.Format(float64(p.Added), unit.Nanoseconds), p.Share(), p.Studies, p.Found, p.Holding)
	}
	looks := make([]string, len(sum.Looks))
	for i, blocks := range sum.Looks {
		looks[i] = strconv.Itoa(blocks)
	}
	var p doc.Page
	p.Add(table, doc.Paragraphf("%s on %s until %s; metric %s, %s a trial, looks at %s blocks. In brackets: Clopper-Pearson, 95 %%. With the noise floor of the others, %d of the %d studies of identical programs gave a false verdict%s.",
		unit.Plural(sum.Sittings, "sitting"), unit.Plural(len(sum.Machines), "machine"), sum.When.Format(time.DateOnly), sum.Metric, sum.Measure, strings.Join(looks, ", "), sum.Apart, sum.Studies, sum.Aside()))
	return p
}

// ofAll is a share of studies with its interval.
func ofAll(k, n int) string {
	if n == 0 {
		return "–"
	}
	b := stats.ClopperPearson(k, n, 0.05)
	return fmt.Sprintf("%d, %s (%s to %s)", k, unit.Format(float64(k)/float64(n), unit.Share), unit.Format(b.Lo, unit.Share), unit.Format(b.Hi, unit.Share))
}
