package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/published"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// claimsPage is a page of the claims: a table for each source.
func claimsPage(rows []entry) doc.Page {
	var p doc.Page
	p.Add(doc.Heading{Level: 1, Text: "Published claims"},
		doc.Paragraph{Text: doc.Spans{
			{Text: fmt.Sprintf("tare tests %d published claims. The statements are in our own words, the figures as published. ", len(rows))},
			{Text: "tare claims --markdown FILE", Code: true},
			{Text: " writes this page. The measured figure stands with its interval, the verdict and the run. "},
			{Text: "tare claims P4.scaling", Code: true},
			{Text: " shows one claim with all its checks."},
		}},
		doc.Paragraph{Text: doc.Plain("A verdict holds for that run on that machine, and for what the checks measure, which may be less than the statement: see the last column. “In direction only”: the effect has the published direction; its size differs or is open. “In size only”: the direction is open; the published size is excluded. “Short form”: fewer blocks, shorter trials.")},
		doc.Paragraph{Text: doc.Plain(countStates(rows) + ".")})
	for len(rows) > 0 {
		source := rows[0].Source
		n := slices.IndexFunc(rows, func(r entry) bool { return r.Source != source })
		if n < 0 {
			n = len(rows)
		}
		p.Add(doc.Heading{Level: 2, Text: source.ID + ": " + source.Subject},
			doc.Paragraph{Text: doc.Plain("Source: " + source.Title + ".")},
			claimsTable(source.ID, rows[:n]))
		rows = rows[n:]
	}
	return p
}

// claimsTable has a row for each claim of a source.
func claimsTable(source string, rows []entry) doc.Table {
	table := doc.Table{Caption: "Claims of " + source, Unlabelled: true, Columns: []doc.Column{
		{Head: "claim", Key: true}, {Head: "statement"}, {Head: "published"}, {Head: "measured"}, {Head: "verdict"}, {Head: "run"}, {Head: "what decides"},
	}}
	for _, r := range rows {
		claim, statement, decides := doc.Cell{Text: r.ID}, doc.Cell{Text: r.Statement}, r.decides()
		if r.Section != "" {
			claim.Notes = []string{r.Section}
		}
		if r.Conditions != "" {
			statement.Notes = []string{"Conditions: " + r.Conditions}
		}
		if r.Audit != "" {
			decides.Notes = []string{r.Audit}
		}
		var figures []string
		for _, v := range r.Values {
			figures = append(figures, describeFigures(v))
		}
		measured, state, run := doc.Cell{Text: r.Measured}, doc.Cell{Text: r.State}, doc.Cell{Text: r.Run}
		if r.Interval != "" {
			measured.Notes = []string{r.Interval}
		}
		if r.Note != "" {
			state.Notes = []string{r.Note}
		}
		if r.Run != "" {
			state.Notes, run.Notes = []string{r.Says}, runNotes(&r.Result)
		}
		table.Rows = append(table.Rows, doc.Row{Cells: []doc.Cell{
			claim, statement, {Text: strings.Join(figures, "; ")}, measured, state, run, decides,
		}})
	}
	return table
}

// decides is what decides the claim, or would.
func (r *entry) decides() doc.Cell {
	switch {
	case r.By != "":
		return doc.Cell{Text: r.By, Code: true}
	case r.State == noStudy:
		return doc.Cell{Text: "a study of the name " + r.Study}
	case r.Rounds > 0:
		return doc.Cell{Text: fmt.Sprintf("%s of captures that count (repeat under attribute)", unit.Plural(r.Rounds, "more round"))}
	case r.State == string(verdict.Inconclusive) && r.Interval != "" && r.Needs == 0:
		return doc.Cell{Text: "no number of blocks that is worth running"}
	case r.Needs > 0 && r.Quick: // it looks once: no look at the primary comparison ends it sooner
		return doc.Cell{Text: fmt.Sprintf("tare run --quick --blocks %d %s", r.Needs, r.Study), Code: true}
	case r.Needs > 0:
		return doc.Cell{Text: fmt.Sprintf("tare run --blocks %d %s", r.Needs, r.Study), Code: true}
	case r.Kind == published.Tested:
		return doc.Cell{Text: "tare run " + r.Study, Code: true}
	}
	return doc.Cell{Text: "a test that shows it"}
}
