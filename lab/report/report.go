// Package report makes a report of what a run says.
//
// [Page] is the report as a page of doc: the headline, the run at a glance, layers and the
// primary comparison first, then folds: workloads, owners, claims, goals, machine code, and how far
// to trust it all. [Text] and [HTML] write it. [Compare] is a page of two runs, [JSON] is for
// programs, [Bench] for benchstat.
//
// None of them decides anything: an analysis of lab/verdict has decided before, so that
// all forms say the same. An interval and the number of blocks stand beside every
// effect, and a reason stands where something is not shown.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/internal/secret"
	"github.com/tarehq/tare/lab/layers"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// Text writes the page without drawings for a terminal or a pipe. It returns the first
// error of writing, as the others do.
func Text(w io.Writer, a *verdict.Analysis, o doc.TextOptions, more ...doc.Block) error {
	return doc.Text(w, Page(nil, a, more...), o)
}

// HTML writes the page as one file that needs no other. The run must be the one that a
// was made from: single trials are drawn. What cannot be read of them is said in the page.
func HTML(w io.Writer, run *record.Run, a *verdict.Analysis, more ...doc.Block) error {
	return doc.HTML(w, Page(run, a, more...), doc.HTMLOptions{Script: doc.ZoomScript()})
}

// Page is the report. A run's single trials are drawn; nil draws none. More stands above its command.
func Page(run *record.Run, a *verdict.Analysis, more ...doc.Block) doc.Page {
	m, s := &a.Manifest, &a.Manifest.Study
	p := doc.Page{Title: s.Name + ": " + a.Headline, Foot: footOf(m)}
	title := "Study " + s.Name
	if m.Quick {
		title += ", quick form"
	}
	if s.Title != "" {
		title += ": " + s.Title
	}
	p.Add(doc.Note(title), doc.Heading{Level: 1, Text: a.Headline}, glance(a))
	if s.Question != "" {
		p.Add(doc.Paragraph{Text: doc.Plain(s.Question)})
	}
	weighed := layers.Blocks(a)
	p.Add(weighed...)
	if w, metric := a.Workload(s.Primary.Workload), a.Primary(); metric != nil && metric.Withheld == "" {
		blocks := metricBlocks(a, w, metric)
		if len(weighed) > 0 { // whose rows say more
			blocks = []doc.Block{doc.Fold{Summary: "Each arm against " + s.Control, ID: "control", Blocks: blocks}}
		}
		p.Add(blocks...)
	}
	for i, w := range s.Workloads {
		p.Add(doc.Fold{Summary: workloadTitle(a, w), ID: fmt.Sprintf("workload-%d", i), Blocks: workloadBlocks(run, a, w)})
	}
	if len(a.Resolutions) > 0 {
		p.Add(doc.Fold{Summary: "Too small for the load, not for the loop in process", ID: "resolutions", Blocks: []doc.Block{resolutions(a)}})
	}
	for i := range a.Accounts {
		p.Add(doc.Fold{Summary: accountTitle(&a.Accounts[i]), ID: fmt.Sprintf("owners-%d", i), Blocks: accountBlocks(&a.Accounts[i])})
	}
	for _, f := range []doc.Fold{accuracyFold(a), claimsFold(a), goalsFold(a), codeFold(m.Code), trustFold(a)} {
		if len(f.Blocks) > 0 {
			p.Add(f)
		}
	}
	p.Add(more...)
	if len(m.Command) > 0 {
		p.Add(doc.Heading{Level: 2, Text: "Repeat it", ID: "repeat"}, doc.Code{Text: ShellLine(m.Command)})
	}
	return p
}

// glance is the run in a few figures.
func glance(a *verdict.Analysis) doc.Terms {
	p := a.Progress()
	state := "not decided"
	switch {
	case a.Decided():
		state = "decided"
	case p.Needs > 0 && p.Needs <= verdict.MostWorthwhile:
		state = "not decided (about " + unit.Plural(p.Needs, "more block") + ")"
	}
	facts := [][2]string{{"state", state}, {"blocks", fmt.Sprint(p.Blocks)}, {"valid trials", fmt.Sprintf("%d of %d", a.Trials.Valid, a.Trials.Total)}}
	if m := a.Primary(); m != nil && m.FloorBy != "" {
		facts = append(facts, [2]string{"noise floor", m.FloorText()})
	}
	return termsOf(true, append(facts, [2]string{"seed", fmt.Sprint(a.Manifest.Seed)}, [2]string{"warnings", fmt.Sprint(len(a.Warnings) + len(a.Trials.Warning))}))
}

// termsOf leaves out what has no text.
func termsOf(inline bool, facts [][2]string) doc.Terms {
	terms := doc.Terms{Inline: inline}
	for _, f := range facts {
		if f[1] != "" {
			terms.Items = append(terms.Items, doc.Term{Name: f[0], Text: doc.Plain(f[1])})
		}
	}
	return terms
}

// workloadTitle says how a workload is asked.
func workloadTitle(a *verdict.Analysis, w study.Workload) string {
	var parts []string
	switch rate := a.Manifest.Rates[w.Name]; {
	case rate > 0:
		parts = append(parts, "open loop at "+unit.Format(rate, unit.PerSecond), w.Schedule+" schedule")
	case w.Flow != nil:
		parts = append(parts, usersOf(w))
	case w.Schedule == "closed":
		parts = append(parts, "closed loop")
	case w.Schedule != "":
		parts = append(parts, w.Schedule+" schedule")
	}
	if w.Connections > 0 {
		parts = append(parts, unit.Number(float64(w.Connections))+" connections")
	}
	if out := a.Workload(w.Name); out != nil {
		parts = append(parts, unit.Plural(out.Blocks, "block"))
	}
	title := w.Name
	if w.Title != "" {
		title += ", " + w.Title
	}
	if len(parts) > 0 {
		title += ": " + strings.Join(parts, ", ")
	}
	return title
}

// usersOf says who takes a workload's flow.
func usersOf(w study.Workload) string {
	switch {
	case w.Profile != "":
		return "users by the profile " + w.Profile
	case w.Schedule == "closed":
		return "a number of users"
	}
	return "users who arrive, " + w.Schedule + " schedule"
}

// workloadBlocks show a workload; one without a valid trial still shows how those went
// that did not count.
func workloadBlocks(run *record.Run, a *verdict.Analysis, declared study.Workload) []doc.Block {
	w := a.Workload(declared.Name)
	if w == nil {
		blocks := []doc.Block{doc.Paragraph{Text: doc.Plain("Nothing is compared: this workload has no pair of valid trials.")}}
		return append(blocks, seriesBlocks(run, declared.Name, armsOf(a, declared))...)
	}
	var full, rest []*verdict.Metric
	for i := range w.Metrics {
		switch m := &w.Metrics[i]; {
		case m.Withheld != "":
		case inFull(a, w, m):
			full = append(full, m)
		default:
			rest = append(rest, m)
		}
	}
	slices.SortStableFunc(full, func(x, y *verdict.Metric) int { return metricOrder(a, w, x) - metricOrder(a, w, y) })
	var blocks []doc.Block
	if len(full) == 0 {
		blocks = append(blocks, doc.Paragraph{Text: doc.Plain("Nothing is compared: this workload has no pair of valid trials.")})
	}
	for _, m := range full {
		if m.Primary {
			blocks = append(blocks, doc.Note(fmt.Sprintf("The primary metric, %s, is at the top.", m.Title)))
			continue
		}
		blocks = append(blocks, metricBlocks(a, w, m)...)
	}
	blocks = append(blocks, quantileBlocks(run, w, armsOf(a, declared))...)
	blocks = append(blocks, seriesBlocks(run, w.Name, armsOf(a, declared))...)
	blocks = append(blocks, medianBlocks(w, rest)...)
	if steps := stepCosts(w); len(steps) > 0 {
		blocks = append(blocks, doc.Heading{Level: 3, Text: "A step of the scale"}, listOf(steps))
	}
	for _, m := range w.Metrics {
		if m.Withheld != "" {
			blocks = append(blocks, doc.Note(fmt.Sprintf("%s (%s) is not shown: %s", m.Title, m.Name, m.Withheld)))
		}
	}
	return blocks
}

// armsOf are the names of the arms of a workload, the control first, so that an arm
// has one colour throughout.
func armsOf(a *verdict.Analysis, w study.Workload) []string {
	names := []string{a.Manifest.Study.Control}
	for _, arm := range a.Manifest.Study.ArmsOf(w) {
		if arm.Name != names[0] {
			names = append(names, arm.Name)
		}
	}
	return names
}

func listOf(texts []string) doc.List {
	var list doc.List
	for _, text := range texts {
		list.Items = append(list.Items, doc.Plain(text))
	}
	return list
}

// resolutions sets end to end and in process side by side.
func resolutions(a *verdict.Analysis) doc.List {
	var texts []string
	for _, r := range a.Resolutions {
		texts = append(texts, fmt.Sprintf("%s, %s: end to end %s %s (%s), %s; in process %s a request (%s), %s",
			r.Workload, r.Arm, r.EndToEnd.Metric.Title, r.EndToEnd.Figure(), r.EndToEnd.Range(), r.EndToEnd.Word(),
			verdict.ShowSigned(r.InProcess.Metric, r.InProcess.Difference.Value), r.InProcess.Range(), r.InProcess.Word()))
	}
	return listOf(texts)
}

// drawn is a drawing that needs no other form: its figures stand beside it.
func drawn(alt, markup string) doc.Figure { return doc.Figure{Alt: alt, Drawing: doc.Markup(markup)} }

// tones of verdicts.
var tones = map[string]doc.Tone{
	string(stats.Faster): doc.Good, string(stats.Slower): doc.Bad,
	string(verdict.Confirmed): doc.Good, string(verdict.Contradicted): doc.Bad, string(verdict.DirectionOnly): doc.Warn, string(verdict.SizeExcluded): doc.Bad, string(verdict.Inconclusive): doc.Warn,
	string(bound.Held): doc.Good, string(bound.Failed): doc.Bad,
	string(verdict.Within): doc.Good, string(verdict.Beyond): doc.Bad, string(verdict.Unknown): doc.Warn,
}

// toneOf is how a verdict looks, whatever it is about.
func toneOf[V ~string](v V) doc.Tone { return cmp.Or(tones[string(v)], doc.Muted) }

// messages are the errors' texts, an empty list for none.
func messages(errs []error) []string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

// ShellLine is a command that a POSIX shell reads as the same words, but for secrets, which are masked.
func ShellLine(words []string) string {
	quoted := secret.MaskAll(words)
	for i, w := range quoted {
		if w == "" || strings.Trim(w, unquoted) != "" {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// unquoted are what a shell's word may have without quotes.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+%"

func footOf(m *record.Manifest) string {
	parts := []string{"run " + m.ID}
	if !m.Started.IsZero() {
		text := m.Started.UTC().Format("2 January 2006, 15:04 UTC")
		if d := m.Took(); d > 0 {
			text += ", took " + d.Round(time.Second).String()
		}
		parts = append(parts, text)
	}
	if m.Tare != "" {
		parts = append(parts, "tare "+m.Tare)
	}
	return strings.Join(append(parts, fmt.Sprintf("record schema %d", m.Schema)), " · ")
}
