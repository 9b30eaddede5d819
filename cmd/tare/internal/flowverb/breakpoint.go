package flowverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/load/flow/script"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// mostDoublings bounds the rates that breakpoint tries.
const mostDoublings = 12

// breaking is what came of the profile breakpoint. Its JSON is the verb's.
type breaking struct {
	Title  string   `json:"title"`
	Held   float64  `json:"held"`   // the highest rate at which all thresholds held, sessions a second; 0 = none
	Broke  float64  `json:"broke"`  // the rate at which one failed; 0 = none
	Ended  string   `json:"ended"`  // why it ended before one failed; "" if one did
	Probes []*probe `json:"probes"` // in order
}

// probe is one rate.
type probe struct {
	Rate float64 `json:"rate"`
	*report
}

// breakpoint doubles the rate until a threshold fails.
func (c *Command) breakpoint(ctx context.Context, t *cli.Terminal, f *script.File) error {
	b := &breaking{Title: c.title(f), Ended: fmt.Sprintf("no threshold failed within %d doublings", mostDoublings)}
	rate := f.Rate()
	var verdict error
	for range mostDoublings + 1 {
		rep, err := c.offer(ctx, t, f.At(rate))
		if err != nil {
			return err
		}
		b.Probes = append(b.Probes, &probe{rate, rep})
		verdict = rep.verdict()
		if rep.Result.Ended == "" && rep.failed() {
			b.Broke, b.Ended, verdict = rate, "", nil
			break
		}
		if verdict != nil {
			b.Ended = cmp.Or(rep.Result.Ended, verdict.Error())
			break
		}
		b.Held = rate
		rate *= 2
	}
	if b.Broke > 0 && b.Held == 0 {
		verdict = &cli.Failure{Status: cli.ExitThreshold, Err: errors.New("a threshold failed at the file's own rate"), Hint: "begin lower, by --rate"}
	}
	return c.finish(t, b.page(), b, verdict)
}

// page is the table of rates.
func (b *breaking) page() doc.Page {
	p := doc.Page{Title: b.Title}
	t := doc.Table{Caption: "rates", Unlabelled: true, Columns: []doc.Column{
		{Head: "sessions a second", Key: true, Right: true}, {Head: "completed", Right: true}, {Head: "failed", Right: true}, {Head: "p99 of requests", Right: true}, {Head: "thresholds"},
	}}
	for _, pr := range b.Probes {
		s, verdict := pr.Result.Sessions, "held"
		for _, o := range pr.Thresholds {
			if o.Outcome != bound.Held {
				verdict = o.String()
			}
		}
		t.Rows = append(t.Rows, doc.Row{Cells: doc.Cells(number(pr.Rate), count(s.Completed), count(s.Failed), nanoseconds(pr.Result.Requests.Response.Quantile(.99)), verdict)})
	}
	p.Add(doc.Heading{Level: 1, Text: b.Title}, t)
	switch {
	case b.Broke > 0 && b.Held > 0:
		p.Add(doc.Paragraphf("It breaks between %s and %s sessions a second.", number(b.Held), number(b.Broke)))
	case b.Broke > 0:
		p.Add(doc.Paragraphf("It breaks below %s.", unit.Format(b.Broke, unit.PerSecond)))
	default:
		p.Add(doc.Paragraphf("It held up to %s sessions a second. The search ended: %s.", number(b.Held), b.Ended))
	}
	return p
}
