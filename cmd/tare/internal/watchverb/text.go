package watchverb

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/watch"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// record is an interval as JSON has it.
type record struct {
	At       time.Time `json:"at"` // its end
	Seconds  float64   `json:"seconds"`
	Services []serving `json:"services"`
	Own      watch.Own `json:"own"`
	Warnings []string  `json:"warnings,omitempty"`
}

// serving is a service of a record: its bill, and what is not in that.
type serving struct {
	Service string  `json:"service"`
	Cores   float64 `json:"cores"` // CPU that it used, of one core
	Builds  []built `json:"builds"`
	Answers *answer `json:"answers,omitempty"`
	*cost.Bill
}

type built struct {
	watch.Build
	PIDs []int    `json:"pids,omitempty"`
	Pods []string `json:"pods,omitempty"`
}

type answer struct {
	Count uint64        `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
}

func newRecord(i *watch.Interval) record {
	r := record{At: i.Begun.Add(i.Duration), Seconds: i.Duration.Seconds(), Own: i.Own, Services: []serving{}}
	for _, s := range i.Services {
		one := serving{Service: s.Name, Cores: s.CPU.Seconds() / i.Duration.Seconds(), Bill: s.Bill, Answers: newAnswer(&s)}
		for _, b := range s.Builds {
			one.Builds = append(one.Builds, built{b.Build, b.PIDs, b.Pods})
		}
		r.Services = append(r.Services, one)
	}
	for _, w := range i.Warnings {
		r.Warnings = append(r.Warnings, w.Error())
	}
	return r
}

// newAnswer is how long answers took; nil if none was timed.
func newAnswer(s *watch.Service) *answer {
	var a answer
	for _, b := range s.Answers {
		a.Count += b.Count
	}
	if a.Count == 0 {
		return nil
	}
	a.P50, a.P99 = watch.Quantile(s.Answers, 0.5), watch.Quantile(s.Answers, 0.99)
	return &a
}

// intervalPage shows an interval.
func intervalPage(i *watch.Interval) doc.Page {
	var p doc.Page
	p.Add(doc.Heading{Level: 1, Text: i.Begun.Add(i.Duration).Format("15:04:05") + "  " + ownText(i)})
	if len(i.Services) == 0 {
		p.Add(doc.Paragraphf("no service ran"))
	}
	for k := range i.Services {
		p.Add(serviceBlocks(&i.Services[k], i.Duration)...)
	}
	return p
}

// ownText says what watching took.
func ownText(i *watch.Interval) string {
	o := i.Own
	text := fmt.Sprintf("%s; own CPU %s of one core, %s", unit.Plural(len(i.Services), "service"), unit.Format(o.CPU, unit.Share), unit.Format(float64(o.Memory), unit.Bytes))
	if o.Hz > 0 {
		text += fmt.Sprintf("; %d Hz took %s more", o.Hz, unit.Format(o.Kernel, unit.Share))
	}
	if o.Backoff > 0 {
		text += fmt.Sprintf("; all halved %s to keep to the budget", unit.Plural(o.Backoff, "time"))
	}
	return text
}

// mostOwners are shown of a service: the largest.
const mostOwners = 10

// serviceBlocks show a service.
func serviceBlocks(s *watch.Service, over time.Duration) []doc.Block {
	b := s.Bill
	facts := []string{unit.Format(s.CPU.Seconds()/over.Seconds(), unit.Share) + " of a core"}
	if b.Requests > 0 {
		facts = append(facts, fmt.Sprintf("%s requests/s ± %s", unit.Number(math.Round(b.Requests/b.Seconds)), unit.Format(b.RequestsMargin/b.Requests, unit.Share)), unit.Format(b.CPU, unit.Nanoseconds)+" a request")
	}
	if a := newAnswer(s); a != nil {
		facts = append(facts, fmt.Sprintf("answers p50 %s, p99 %s", unit.Format(float64(a.P50), unit.Nanoseconds), unit.Format(float64(a.P99), unit.Nanoseconds)))
	}
	var builds []string
	for _, b := range s.Builds {
		builds = append(builds, buildText(&b))
	}
	out := []doc.Block{
		doc.Heading{Level: 2, Text: s.Name + ": " + strings.Join(facts, ", ")},
		doc.Note(strings.Join(builds, "; ")),
	}
	if b.CPU == 0 {
		return append(out, doc.Paragraphf("idle"))
	}
	t := doc.Table{Caption: "owners", Unlabelled: true, Columns: []doc.Column{
		{Head: "self", Right: true}, {Head: "±", Right: true}, {Head: "of all", Right: true}, {Head: "owner", Key: true, Shrink: true},
	}}
	items, more, rest := b.Weighty()
	for k := range items {
		switch {
		case items[k].Self == 0: // known from earlier intervals
		case len(t.Rows) < mostOwners:
			t.Rows = append(t.Rows, ownerRow(&items[k], b.CPU))
		default:
			rest += items[k].Self
			more++
		}
	}
	out = append(out, t)
	if more > 0 {
		out = append(out, doc.Note(fmt.Sprintf("%s, %s together", unit.Plural(more, "more owner"), unit.Format(rest, unit.Nanoseconds))))
	}
	return out
}

func ownerRow(it *cost.Item, all float64) doc.Row {
	notes := []string{it.Kind}
	if it.Where != "" {
		notes = append(notes, it.Where)
	}
	for _, c := range it.Causes[:min(2, len(it.Causes))] {
		if share := c.Value / it.Self; share >= 0.05 {
			notes = append(notes, fmt.Sprintf("%s %.0f %%", c.Cause, 100*share))
		}
	}
	cells := doc.Cells(unit.Some(it.Self, unit.Nanoseconds), unit.Some(it.Margin, unit.Nanoseconds), unit.Some(it.Self/all, unit.Share))
	return doc.Row{Cells: append(cells, doc.Cell{Text: it.Owner + "  " + strings.Join(notes, ", ")})}
}

// buildText says what runs.
func buildText(b *watch.Seen) string {
	text := "build " + b.ID
	if b.Revision != "" {
		text += " of revision " + b.Revision
	}
	if b.Go != "" {
		text += ", " + b.Go
	}
	switch n := len(b.PIDs); {
	case n == 1:
		text += fmt.Sprintf(", process %d", b.PIDs[0])
	case n > 1:
		text += fmt.Sprintf(", %d processes", n)
	}
	switch n := len(b.Pods); {
	case n == 1:
		text += ", pod " + b.Pods[0]
	case n > 1:
		text += fmt.Sprintf(", %d pods", n)
	}
	return text
}
