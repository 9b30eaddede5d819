package doctor

import (
	"fmt"
	"math"
	"slices"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// goroutinesRule asks whether goroutines that requests start end with them.
func goroutinesRule() Rule {
	return Rule{
		Name:      "goroutines",
		Question:  "Do goroutines grow in number under constant load?",
		Threshold: "their number at one place grows with every look, by more than 10 in all and by more than 1 per 10,000 requests; or the collector finds more than 10 that wait forever",
		Remedy:    "end it with the request: select on the request's Context().Done() beside the channel, buffer the channel for the one answer, and close what it reads from",
		Verify:    "tare doctor again: the number stays; or go test with the goroutineleak profile",
		needs:     []Part{GoroutineCounts},
		traffic:   true,
		check:     checkGoroutines,
	}
}

// group is goroutines that began with one function and stand at one place.
type group struct{ began, at cost.Frame }

const fewestGrown = 10

func checkGoroutines(e *Evidence) ([]Finding, *Missing) {
	var found []Finding
	series, stuck := e.series(), e.stuck()
	for g, counts := range series {
		first, last := counts[0], counts[len(counts)-1]
		grown := last - first
		if grown <= fewestGrown || !slices.IsSorted(counts) || counts[len(counts)/2] == first || counts[len(counts)/2] == last {
			continue
		}
		f := e.leak(g, counts)
		if n := stuck[g]; n > 0 {
			f.Evidence = append(f.Evidence, Row{What: "wait for ever, by the collector's word", Value: n, Unit: unit.Count})
			delete(stuck, g)
		}
		found = append(found, f)
	}
	for g, n := range stuck {
		found = append(found, leaked(g, n))
	}
	return dearestFirst(found), nil
}

// series counts each group at each time. Connections between two requests are left
// out: their number is the clients' affair.
func (e *Evidence) series() map[group][]float64 {
	all := map[group][]float64{}
	for i, c := range e.Counts {
		for j := range c.Goroutines {
			frames := c.Goroutines[j].Frames
			if len(frames) == 0 || symptom.Instrument(frames) || connection(frames) >= 0 && !cost.InRequest(frames) {
				continue
			}
			g := groupOf(frames)
			if all[g] == nil {
				all[g] = make([]float64, len(e.Counts))
			}
			all[g][i] += c.Goroutines[j].Count
		}
	}
	return all
}

// connection matches the goroutines of net/http's connections.
var connection = symptom.Calls("net/http.(*conn).serve", "net/http.(*connReader)")

// stuck counts by group the goroutines that the collector found to wait for what
// nothing can reach any more. It counts select {} among them, by which a program
// says that waiting for ever is meant.
func (e *Evidence) stuck() map[group]float64 {
	all := map[group]float64{}
	for i := range e.Leaked {
		s := &e.Leaked[i]
		if len(s.Frames) > 0 && s.Count > 0 && symptom.Calls("runtime.block")(s.Frames) < 0 {
			all[groupOf(s.Frames)] += s.Count
		}
	}
	return all
}

func groupOf(frames []cost.Frame) group {
	began := frames[len(frames)-1]
	return group{began: cost.Frame{Func: began.Func, File: began.File, Decl: began.Decl}, at: parkedAt(frames)}
}

// parkedAt is where in the program's own code a goroutine stands.
func parkedAt(frames []cost.Frame) cost.Frame {
	for _, f := range frames {
		if !f.Standard() {
			return f
		}
	}
	return frames[len(frames)-1]
}

// leak describes a group that grew.
func (e *Evidence) leak(g group, counts []float64) Finding {
	grown := counts[len(counts)-1] - counts[0]
	margin := 1.96 * math.Sqrt(grown)
	over := e.Counts[len(e.Counts)-1].After - e.Counts[0].After
	by, per := e.requests(over), "request"
	if by == 0 {
		by, per = max(over.Seconds(), 1e-9), "second"
	}
	price := Price{Value: grown, Low: grown - margin, High: grown + margin, Per: per, Of: "goroutines"}.times(1 / by)
	severity := Serious
	if per == "request" && price.Low < 1e-4 {
		severity = Uncertain
		if price.Value < 1e-4 {
			severity = Cheap
		}
	}
	rows := []Row{
		{What: "wait in " + g.at.Name(), Where: shortPlace(g.at), Unit: Words},
		{What: "at the first look", Value: counts[0], Unit: unit.Count},
		{What: "at the last look", Value: counts[len(counts)-1], Unit: unit.Count},
	}
	where := g.began.Name()
	if birth, ok := e.Births[g.began.Func]; ok {
		where = shortPlace(birth)
		rows = append(rows, Row{What: "started by " + birth.Name(), Where: where, Unit: Words})
	}
	if connection([]cost.Frame{g.began}) >= 0 {
		return Finding{
			Severity: min(severity, Warning), Price: &price, Evidence: append(rows, note("a request each: clients that stay on purpose, such as long polls, look the same")),
			Title:  fmt.Sprintf("requests that wait in %s do not end: %s more in %s s", g.at.Name(), unit.Number(grown), unit.Number(math.Round(over.Seconds()))),
			Remedy: "have the handler give up with its client (select on the request's Context().Done()) and after a bound of its own",
		}
	}
	return Finding{
		Severity: severity, Price: &price, Evidence: rows,
		Title: fmt.Sprintf("goroutines started at %s do not end: %s more in %s s", where, unit.Number(grown), unit.Number(math.Round(over.Seconds()))),
	}
}

// leaked describes n goroutines that wait for ever, and may have for long.
func leaked(g group, n float64) Finding {
	severity := Cheap
	if n > fewestGrown {
		severity = Serious
	}
	return Finding{
		Severity: severity, Price: &Price{Value: n, Low: n, High: n, Of: "goroutines"},
		Title:    fmt.Sprintf("%s goroutines wait for ever in %s", unit.Number(n), g.at.Name()),
		Evidence: []Row{{What: "wait in " + g.at.Name() + " for what nothing can do any more", Where: shortPlace(g.at), Value: n, Unit: unit.Count}},
	}
}
