package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/links"
	"github.com/tarehq/tare/web/trend"
)

// listStudies lists the studies that have runs.
func (s *Site) listStudies(w http.ResponseWriter, r *http.Request) error {
	all, err := s.o.Index.Studies(r.Context())
	if err != nil {
		return err
	}
	v := view{Title: "Studies", Here: "/studies"}
	v.add(doc.Heading{Level: 1, Text: "Studies"})
	table := doc.Table{Caption: "Studies", Unlabelled: true, Columns: []doc.Column{{Head: "study", Key: true}, {Head: "runs", Right: true}, {Head: "newest run"}, {Head: "ended"}, {Head: "its finding"}}}
	for _, st := range all {
		n := st.Newest
		table.Rows = append(table.Rows, doc.Row{Cells: []doc.Cell{links.Cell(links.Study(st.Name, nil), st.Name, n.Title), {Text: strconv.Itoa(st.Runs)},
			links.Cell(links.Run(n.Name), links.Date(n.Started)), {Text: n.State(time.Now())}, {Text: n.Headline}}})
	}
	if len(all) == 0 {
		v.add(doc.Paragraph{Text: doc.Plain("There are no runs yet.")})
	}
	v.add(table)
	return s.render(w, &v)
}

// studyForm chooses what is followed of a study.
type studyForm struct {
	Of      string // value of a choice
	Choices []option
	Arm     string
	Arms    []string
	Any     bool // runs of any control
}

// option is a choice with its text.
type option struct{ Value, Text string }

// separator stands between workload and metric in a form's value.
const separator = "/"

func optionsOf(choices []history.Choice) (all []option) {
	for _, c := range choices {
		all = append(all, option{c.Metric + separator + c.Workload, trend.Title(c.Metric) + ", " + c.Workload})
	}
	return all
}

// choose is what a request follows: what it asks for, else the newest run's primary
// metric, else the first that there is.
func choose(choices []history.Choice, of string, newest *history.Run) (history.Choice, bool) {
	metric, workload, _ := strings.Cut(of, separator)
	for _, c := range []history.Choice{{Workload: workload, Metric: metric}, {Workload: newest.Workload, Metric: newest.Metric}} {
		if slices.Contains(choices, c) {
			return c, true
		}
	}
	if len(choices) == 0 {
		return history.Choice{}, false
	}
	return choices[0], true
}

// showStudy follows a metric of a study over its runs.
func (s *Site) showStudy(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("study")
	runs, all, err := s.o.Index.Runs(r.Context(), history.Query{Study: name})
	if err != nil {
		return err
	}
	if all == 0 {
		return problem{http.StatusNotFound, "No run has a study of that name."}
	}
	choices, err := s.o.Index.Choices(r.Context(), name)
	if err != nil {
		return err
	}
	v := view{Title: name, Here: "/studies"}
	newest := &runs[max(0, slices.IndexFunc(runs, func(r history.Run) bool { return r.Metric != "" }))] // that was analysed
	v.add(doc.Note(studyTitle(name, newest.Title)), links.Beside("This study", links.To("/?"+url.Values{"study": {name}}.Encode(), "List its "+unit.Plural(all, "run"))))
	of, ok := choose(choices, r.FormValue("of"), newest)
	if !ok {
		v.add(doc.Heading{Level: 1, Text: name}, doc.Paragraph{Text: doc.Plain("No run of the study has a ratio to follow yet: one is kept of each run that ended.")})
		return s.render(w, &v)
	}
	f := studyForm{Of: of.Metric + separator + of.Workload, Choices: optionsOf(choices), Any: r.FormValue("control") == "any"}
	series, err := s.o.Index.Follow(r.Context(), name, of, !f.Any)
	if err != nil {
		return err
	}
	f.Arms, f.Arm = series.Arms, r.FormValue("arm")
	if !slices.Contains(f.Arms, f.Arm) {
		f.Arm = mostRun(series)
	}
	v.Kind, v.Form = "study", f
	v.Title = name + ": " + trend.Title(of.Metric)
	if err := s.inTurn(r.Context(), func() error {
		v.add(trend.New(of, f.Arm, series).Blocks()...)
		return nil
	}); err != nil {
		return err
	}
	if len(f.Arms) > 1 {
		v.add(doc.Heading{Level: 2, Text: "All arms"}, armsTable(name, f, series))
	}
	return s.render(w, &v)
}

// studyTitle is a study's name with its title, where that is known.
func studyTitle(name, title string) string {
	if title == "" {
		return "Study " + name
	}
	return "Study " + name + ": " + title
}

// mostRun is the arm that most runs have; "" without any.
func mostRun(s *history.Series) (arm string) {
	most := 0
	for _, a := range s.Arms {
		if _, at := s.Values(a); len(at) > most {
			arm, most = a, len(at)
		}
	}
	return arm
}

// armsTable has where each arm was last.
func armsTable(study string, f studyForm, s *history.Series) doc.Table {
	table := doc.Table{Caption: "All arms", Unlabelled: true, Columns: []doc.Column{{Head: "arm", Key: true}, {Head: "newest change", Right: true}, {Head: "interval"}, {Head: "runs", Right: true}}}
	for _, arm := range f.Arms {
		_, at := s.Values(arm)
		if len(at) == 0 {
			continue
		}
		p := s.Entries[at[len(at)-1]].Of(arm)
		q := url.Values{"of": {f.Of}, "arm": {arm}}
		if f.Any {
			q.Set("control", "any")
		}
		table.Rows = append(table.Rows, doc.Row{Cells: []doc.Cell{links.Cell(links.Study(study, q), arm), {Text: unit.Change(p.Value)}, {Text: trend.Range(p)}, {Text: strconv.Itoa(len(at))}}})
	}
	return table
}
