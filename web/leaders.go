package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/web/links"
	"github.com/tarehq/tare/web/trend"
)

// leadersForm chooses what is ranked.
type leadersForm struct {
	Study   string
	Studies []string
	Metric  string
	Choices []option
}

// showLeaders ranks the arms of the newest run of a study that ranks them.
func (s *Site) showLeaders(w http.ResponseWriter, r *http.Request) error {
	all, err := s.o.Index.Studies(r.Context())
	if err != nil {
		return err
	}
	f := leadersForm{Study: r.FormValue("study"), Metric: r.FormValue("metric")}
	for _, st := range all {
		if st.Ranked {
			f.Studies = append(f.Studies, st.Name)
		}
	}
	slices.Sort(f.Studies)
	v := view{Title: "Leaderboard", Here: "/leaderboard"}
	if len(f.Studies) == 0 {
		v.add(doc.Heading{Level: 1, Text: "Leaderboard"}, doc.Paragraph{Text: doc.Plain("No run ranks its arms yet: it takes four arms and a run that ended, such as one of the study frameworks.")})
		return s.render(w, &v)
	}
	if f.Study == "" {
		f.Study = f.Studies[max(0, slices.Index(f.Studies, "frameworks"))]
	}
	row, err := s.o.Index.Ranked(r.Context(), f.Study)
	if err != nil {
		return err
	}
	_, found, err := s.openRun(r, row.Name)
	if err != nil {
		return err
	}
	f.Choices = rankedMetrics(found.a)
	if !slices.ContainsFunc(f.Choices, func(o option) bool { return o.Value == f.Metric }) {
		f.Metric = row.Metric
	}
	v.Kind, v.Form, v.Title = "leaders", f, "Leaderboard of "+f.Study
	v.add(doc.Heading{Level: 1, Text: fmt.Sprintf("%s: %s", f.Study, trend.Title(f.Metric))},
		links.Beside("The run", links.To(links.Run(row.Name), "Run "+row.Name), links.To(links.Study(f.Study, nil), "Over all runs")),
		doc.Note(fmt.Sprintf("Ranks are intervals: the best and the worst place that the data leave possible. They hold together, for all arms of a table, with the confidence that it names. Arms of one tier are linked by pairs that were not distinguished. Run of %s.", links.Date(row.Started))))
	for i := range found.a.Workloads {
		v.add(leaderBlocks(&found.a.Workloads[i], f.Metric)...)
	}
	return s.render(w, &v)
}

// rankedMetrics are those by which a run ranks its arms.
func rankedMetrics(a *verdict.Analysis) []option {
	var all []option
	for i := range a.Workloads {
		for _, m := range a.Workloads[i].Metrics {
			if o := (option{m.Name, m.Title}); m.Ranking != nil && !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	return all
}

// leaderBlocks rank the arms under one workload.
func leaderBlocks(w *verdict.Workload, metric string) []doc.Block {
	m := w.Metric(metric)
	if m == nil || m.Ranking == nil {
		return nil
	}
	title := w.Name
	if w.Title != "" {
		title += ", " + w.Title
	}
	out := []doc.Block{doc.Heading{Level: 2, Text: title}}
	if n := m.Ranking.Needs; n > 0 {
		out = append(out, doc.Warning{Text: doc.Plain(fmt.Sprintf("%d blocks are too few to distinguish this many arms: it takes %d.", w.Blocks, n))})
	}
	ranks := slices.SortedStableFunc(slices.Values(m.Ranking.Ranks), func(a, b verdict.Rank) int {
		return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi), compareMedians(m, a.Arm, b.Arm))
	})
	table := doc.Table{Caption: fmt.Sprintf("Ranks under %s, %s confidence", w.Name, verdict.Confidence(w.Alpha)), Columns: []doc.Column{{Head: "rank", Key: true}, {Head: "arm"}, {Head: "tier", Right: true}, {Head: "against the control", Right: true}, {Head: "interval"}, {Head: "blocks", Right: true}}}
	for _, r := range ranks {
		place := strconv.Itoa(r.Lo)
		if r.Hi > r.Lo {
			place += "–" + strconv.Itoa(r.Hi)
		}
		cells := []doc.Cell{{Text: place}, {Text: r.Arm}, {Text: strconv.Itoa(r.Tier)}, {Text: "control"}}
		if c := m.Against(r.Arm); c != nil {
			cells[3].Text = c.Figure()
			cells = append(cells, doc.Cell{Text: c.Deciding().Text(c)}, doc.Cell{Text: strconv.Itoa(c.N)})
		}
		table.Rows = append(table.Rows, doc.Row{Cells: cells})
	}
	return append(out, table)
}

// compareMedians puts the better of two arms first.
func compareMedians(m *verdict.Metric, a, b string) int {
	x, y := m.Level(a), m.Level(b)
	if x == nil || y == nil {
		return 0
	}
	if m.Higher {
		x, y = y, x
	}
	return cmp.Compare(x.Median, y.Median)
}
