package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

//go:embed html.tmpl html.css html.js
var htmlFiles embed.FS

// HTML writes the report as one file that needs no other: it loads nothing,
// reads on a phone, in the dark and on paper, and its one script only widens
// drawings. The run must be the one that a was made from; its histograms are
// read for the quantile curves, and what cannot be read of them is said in the
// report. All text that comes from the run is escaped by html/template, which
// the drawings go through too. It returns the first error of writing.
func HTML(w io.Writer, run *record.Run, a *verdict.Analysis) error {
	t, err := template.ParseFS(htmlFiles, "html.tmpl", "html.css", "html.js")
	if err != nil {
		return fmt.Errorf("parsing the template of the HTML report: %w", err)
	}
	if err := t.ExecuteTemplate(w, "html.tmpl", newHTMLPage(run, a)); err != nil {
		return fmt.Errorf("writing HTML report: %w", err)
	}
	return nil
}

// htmlPage is what the template shows. It is text and coordinates: whatever
// takes a decision was taken before.
type htmlPage struct {
	Name, Title, Question, Notes string
	Quick                        bool
	Headline                     string
	State                        []pair // the run at a glance
	Workloads                    []htmlWorkload
	Resolutions                  []string
	Accounts                     []htmlAccount
	Accuracy                     *htmlAccuracy
	Claims                       []htmlClaim
	Goals                        *htmlGoals
	Code                         []record.Code
	Trust                        htmlTrust
	Command                      string
	Foot                         string
}

// pair is a line of a list of terms.
type pair struct{ Term, Text string }

// htmlWorkload is the section of one workload.
type htmlWorkload struct {
	Index            int // of the section
	Name, Title, Sub string
	Forests          []forest
	Quantiles        *quantileFigure
	Series           *seriesFigure
	Matrices         []matrix
	Withheld         []pair
}

func newHTMLPage(run *record.Run, a *verdict.Analysis) *htmlPage {
	m := &a.Manifest
	s := &m.Study
	p := &htmlPage{
		Name: s.Name, Title: s.Title, Question: s.Question, Notes: s.Notes, Quick: m.Quick,
		Headline: unbroken(a.Headline), State: glance(a),
		Code: m.Code, Trust: newTrust(a), Command: shellLine(m.Command), Foot: foot(m),
	}
	for i, w := range s.Workloads {
		section := newHTMLWorkload(run, a, w)
		section.Index = i
		p.Workloads = append(p.Workloads, section)
	}
	for _, r := range a.Resolutions {
		p.Resolutions = append(p.Resolutions, resolution(r))
	}
	for i := range a.Accounts {
		account := newHTMLAccount(&a.Accounts[i])
		account.Index = i
		p.Accounts = append(p.Accounts, account)
	}
	p.Accuracy = newHTMLAccuracy(a)
	for i := range a.Claims {
		p.Claims = append(p.Claims, newHTMLClaim(&a.Claims[i]))
	}
	p.Goals = newHTMLGoals(a)
	return p
}

// newHTMLWorkload shows a workload; one without a valid trial still shows the
// series of those that did not count.
func newHTMLWorkload(run *record.Run, a *verdict.Analysis, declared study.Workload) htmlWorkload {
	out := htmlWorkload{Name: declared.Name, Title: declared.Title, Sub: load(a, declared)}
	out.Series = newSeries(run, declared.Name, arms(a, declared))
	w := a.Workload(declared.Name)
	if w == nil {
		return out
	}
	for i := range w.Metrics {
		if m := &w.Metrics[i]; inFull(a, w, m) {
			out.Forests = append(out.Forests, newForest(a, w, m))
		}
	}
	slices.SortStableFunc(out.Forests, func(x, y forest) int { return x.order - y.order })
	if out.Quantiles = newQuantiles(run, w.Name, arms(a, declared)); out.Quantiles != nil {
		out.Quantiles.Rates = otherRates(w)
	}
	out.Matrices = newMatrices(w)
	for _, m := range w.Metrics {
		if m.Withheld != "" {
			out.Withheld = append(out.Withheld, pair{m.Title, m.Withheld})
		}
	}
	return out
}

// otherRates says whether response times of some arms are not compared.
func otherRates(w *verdict.Workload) bool {
	m := w.Metric("response_p50")
	return m != nil && slices.ContainsFunc(m.Compared, func(c verdict.Comparison) bool { return c.Withheld != "" })
}

// arms are the names of the arms of a workload, the control first, so that an
// arm has one colour throughout.
func arms(a *verdict.Analysis, w study.Workload) []string {
	names := []string{a.Manifest.Study.Control}
	for _, arm := range a.Manifest.Study.ArmsOf(w) {
		if arm.Name != names[0] {
			names = append(names, arm.Name)
		}
	}
	return names
}

// load says how a workload is asked.
func load(a *verdict.Analysis, w study.Workload) string {
	var parts []string
	switch rate := a.Manifest.Rates[w.Name]; {
	case rate > 0:
		parts = append(parts, "open loop at "+unit.Format(rate, unit.PerSecond), w.Schedule+" schedule")
	case w.Schedule == "closed":
		parts = append(parts, "closed loop")
	case w.Schedule != "":
		parts = append(parts, w.Schedule+" schedule")
	}
	if w.Connections > 0 {
		parts = append(parts, unit.Number(float64(w.Connections))+" connections")
	}
	if out := a.Workload(w.Name); out != nil {
		parts = append(parts, verdict.Count(out.Blocks, "block"))
	}
	return strings.Join(parts, ", ")
}

// glance is the run in a few figures.
func glance(a *verdict.Analysis) []pair {
	p := a.Progress()
	state := "not decided"
	switch {
	case a.Decided():
		state = "decided"
	case p.Needs > 0 && p.Needs <= verdict.MostWorthwhile:
		state = "not decided, about " + verdict.Count(p.Needs, "more block")
	}
	all := []pair{{"state", state}, {"blocks", fmt.Sprint(p.Blocks)}, {"trials that count", fmt.Sprintf("%d of %d", a.Trials.Valid, a.Trials.Total)}}
	if m := a.Primary(); m != nil && m.FloorBy != "" {
		all = append(all, pair{"noise floor", m.FloorText()})
	}
	return append(all, pair{"seed", fmt.Sprint(a.Manifest.Seed)}, pair{"warnings", fmt.Sprint(len(a.Warnings) + len(a.Trials.Warning))})
}

// unbroken keeps units at their numbers.
func unbroken(s string) string {
	for _, u := range []string{"%", "ns", "µs", "ms"} {
		s = strings.ReplaceAll(s, " "+u, "\u00a0"+u)
	}
	return s
}

// shellLine is a command that a POSIX shell reads as the same words.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsFunc(w, needsQuotes) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func needsQuotes(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+%", r)
}

func foot(m *record.Manifest) string {
	parts := []string{"run " + m.ID}
	if !m.Started.IsZero() {
		text := m.Started.UTC().Format("2 January 2006, 15:04 UTC")
		if d := m.Ended.Sub(m.Started); !m.Ended.IsZero() && d > 0 {
			text += ", took " + d.Round(time.Second).String()
		}
		parts = append(parts, text)
	}
	if m.Tare != "" {
		parts = append(parts, "tare "+m.Tare)
	}
	return strings.Join(append(parts, fmt.Sprintf("record schema %d", m.Schema)), " · ")
}
