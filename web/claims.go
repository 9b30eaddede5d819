package web

import (
	"fmt"
	"net/http"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/published"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/studies"
	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/links"
)

// claimList are the claims that come with tare, with what runs on its authors' machine
// found.
type claimList struct {
	claims  []published.Claim
	rules   map[string][]study.Check
	results map[string]studies.Result
}

func readClaims() (p claimList, err error) {
	if p.claims, err = studies.Claims(); err != nil {
		return p, err
	}
	tested, err := studies.All()
	if err != nil {
		return p, err
	}
	p.rules = studies.Rules(tested)
	p.results, err = studies.Results()
	return p, err
}

// listClaims lists the published claims, and what the folder's runs found of them.
func (s *Site) listClaims(w http.ResponseWriter, r *http.Request) error {
	p, err := s.claims()
	if err != nil {
		return err
	}
	judged, err := s.o.Index.Claims(r.Context(), p.rules)
	if err != nil {
		return err
	}
	v := view{Title: "Claims", Here: "/claims"}
	settled := 0
	for _, c := range p.claims {
		if history.Settled(judged[c.ID].Verdict) {
			settled++
		}
	}
	v.add(doc.Heading{Level: 1, Text: "Published claims"},
		doc.Paragraphf("The runs in this folder settle %d of %d claims. Each claim also has the verdict that came with tare.", settled, len(p.claims)))
	var table doc.Table
	for i, c := range p.claims {
		if i == 0 || c.Source != p.claims[i-1].Source {
			v.add(table, doc.Heading{Level: 2, Text: c.Source.ID + ": " + c.Source.Subject})
			table = doc.Table{Caption: "Claims of " + c.Source.ID, Unlabelled: true, Columns: []doc.Column{{Head: "claim", Key: true}, {Head: "statement"}, {Head: "here"}, {Head: "newest run", Right: true}, {Head: "came with tare"}}}
		}
		table.Rows = append(table.Rows, claimRow(c, judged[c.ID], p.results[c.ID]))
	}
	v.add(table)
	return s.render(w, &v)
}

func claimRow(c published.Claim, here history.Judged, kept studies.Result) doc.Row {
	run := doc.Cell{}
	if here.Run != "" {
		run = links.Cell(links.Run(here.Run), links.Date(here.Started))
		if here.Runs > 1 {
			run.Notes = []string{fmt.Sprintf("of %d runs", here.Runs)}
		}
	}
	verdict := verdictCell(here.Verdict)
	if here.Sentence != "" {
		verdict.Notes = []string{here.Sentence}
	}
	if here.Others > 0 {
		verdict.Notes = append(verdict.Notes, "not counted: "+unit.Plural(here.Others, "run")+" by a rule that the study no longer has")
	}
	state := kept.State
	if state == "" {
		state = c.Verdict
	}
	return doc.Row{Cells: []doc.Cell{{Text: c.ID, Notes: notes(c.Section)}, {Text: c.Statement}, verdict, run, verdictCell(state)}}
}

func notes(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// verdictCell is a verdict in the colour that goes with it.
func verdictCell(v string) doc.Cell {
	tones := map[string]doc.Tone{"confirmed": doc.Good, "confirmed in direction only": doc.Good, "contradicted": doc.Bad, "contradicted in size only": doc.Bad}
	return doc.Cell{Text: v, Tone: tones[v]}
}
