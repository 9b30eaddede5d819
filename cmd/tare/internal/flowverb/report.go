package flowverb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/flow"
	"github.com/tarehq/tare/load/flow/script"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// report is a result and what came of it. Its JSON is the verb's.
type report struct {
	Title      string       `json:"title"`
	Profile    string       `json:"profile"` // "" = none
	Thresholds []outcome    `json:"thresholds"`
	Drift      []flow.Drift `json:"drift,omitempty"` // of a soak, or where --pid names the service
	Result     *flow.Result `json:"result"`

	open        bool
	unreachable bool
}

// outcome is what became of a threshold.
type outcome struct {
	Of      string        `json:"of"` // sessions, or flow/step
	FailIf  string        `json:"fail_if"`
	Outcome bound.Outcome `json:"outcome"`
	Value   string        `json:"value"` // what it is, in words; "" if inconclusive

	err error
}

func (o outcome) String() string {
	text := fmt.Sprintf("%s: fail if %s: %s", o.Of, o.FailIf, o.Outcome)
	if o.err != nil {
		return text + ", " + o.err.Error()
	}
	return text + ", it is " + o.Value
}

// judge judges the thresholds of the file, its steps' and the command line's.
func (r *report) judge(sessions []load.Threshold, limits []limit) {
	res := r.Result
	r.Thresholds = []outcome{}
	whole := res.Sessions.Judged(res.Elapsed)
	for _, t := range sessions {
		r.add("sessions", t, whole)
	}
	for _, l := range limits {
		if l.step == "" {
			r.add("sessions", l.threshold, whole)
		}
	}
	for i := range res.Steps {
		o := &res.Steps[i]
		name := o.Flow + "/" + o.Step
		for _, t := range o.FailIf {
			r.add(name, t, o.Judged(res.Elapsed))
		}
		for _, l := range limits {
			if l.step == o.Step || l.step == name {
				r.add(name, l.threshold, o.Judged(res.Elapsed))
			}
		}
	}
}

func (r *report) add(of string, t load.Threshold, res *load.Result) {
	o := outcome{Of: of, FailIf: t.String(), Outcome: bound.Held}
	failed, value, err := t.Holds(res)
	switch {
	case err != nil:
		o.Outcome, o.err = bound.Inconclusive, err
		if of == "sessions" {
			o.err = errors.New(strings.ReplaceAll(err.Error(), "requests", of))
		}
	case failed:
		o.Outcome, o.Value = bound.Failed, value
	default:
		o.Value = value
	}
	r.Thresholds = append(r.Thresholds, o)
}

// failed reports whether a threshold failed, or a soak found that something grew.
func (r *report) failed() bool {
	return slices.ContainsFunc(r.Thresholds, func(o outcome) bool { return o.Outcome == bound.Failed }) ||
		slices.ContainsFunc(r.Drift, func(d flow.Drift) bool { return d.Outcome == flow.Grows })
}

// notOffered reports whether an open loop did not offer what was asked for.
func (r *report) notOffered() bool {
	return r.open && (r.Result.Sessions.Dropped > 0 || r.Result.Generator.Bound)
}

// verdict is the exit status of a report that was shown.
func (r *report) verdict() error {
	c, s := r.Result.Requests.Counts, r.Result.Sessions
	switch {
	case r.unreachable:
		return &cli.Failure{Status: cli.ExitFailed, Err: cli.ErrUnreachable, Hint: "check the base of the file, or give --base"}
	case r.Result.Ended != "":
		return &cli.Failure{Status: cli.ExitInterrupted}
	case c.Answered() == 0:
		return &cli.Failure{Status: cli.ExitFailed, Err: errors.New("no request was answered")}
	case s.Completed == 0 && s.Failed > 0 && !r.failed():
		return &cli.Failure{Status: cli.ExitFailed, Err: errors.New("no session was completed"), Hint: "the table says which step went wrong"}
	case r.failed():
		return &cli.Failure{Status: cli.ExitThreshold}
	case r.notOffered():
		return &cli.Failure{Status: cli.ExitNotOffered, Err: errors.New("the load was not offered as asked for"), Hint: "lower the rate, or give the generator CPUs of its own"}
	}
	for _, o := range r.Thresholds {
		if o.err != nil && r.Profile != script.Smoke { // which is too short for quantiles
			return &cli.Failure{Status: cli.ExitInconclusive, Err: o.err, Hint: "a longer --duration or a higher --rate gives more"}
		}
	}
	return nil
}

// page is the report for people.
func (r *report) page() doc.Page {
	p := doc.Page{Title: r.Title}
	p.Add(doc.Heading{Level: 1, Text: r.Title}, r.facts(), r.steps(), doc.Note("Times are response times: from when the user wanted the request to the last byte."))
	for _, o := range r.Result.Steps {
		for _, cause := range o.Causes {
			p.Add(doc.Paragraphf("%s/%s went wrong: %s", o.Flow, o.Step, cause))
		}
	}
	switch {
	case len(r.Drift) > 0:
		p.Add(drifts(r.Drift))
	case r.Profile == script.Soak:
		p.Add(doc.Note("The run was too short for a verdict on drift: that takes 15 seconds with answers."))
	}
	p.Add(cli.Warnings(cli.Texts(r.Result.Warnings))...)
	for _, o := range r.Thresholds {
		span := doc.Span{Text: o.String()}
		if o.Outcome == bound.Failed {
			span.Tone = doc.Bad
		}
		p.Add(doc.Paragraph{Text: doc.Spans{span}})
	}
	if r.Result.Ended != "" {
		p.Add(doc.Paragraphf("ended early: %s", r.Result.Ended))
	}
	return p
}

// facts are the counts.
func (r *report) facts() doc.Terms {
	res := r.Result
	s, g := res.Sessions, res.Generator
	var t doc.Terms
	t.Add("sessions", "%s begun, %s completed, %s failed, %s unfinished, %s turned away", count(s.Begun), count(s.Completed), count(s.Failed), count(s.Unfinished), count(s.Dropped))
	t.Add("users", "at most %s at a time", number(float64(s.Peak)))
	if s.Completed > 0 {
		t.Add("waited", "%s for answers in a session", times(s.Waited))
		t.Add("took", "%s from arrival to end, time to think included", times(s.Whole))
	}
	c := res.Requests.Counts
	t.Add("requests", "%s, %s answered in %s", count(c.Scheduled), count(c.Answered()), seconds(res.Elapsed))
	t.Add("errors", "%s", cmp.Or(failures(c), "none"))
	if res.WarmUp > 0 {
		t.Add("warm-up", "%s, not counted here", unit.Plural(res.WarmUp, "request"))
	}
	late := "late by at most " + nanoseconds(g.Lag.Max())
	if g.Lag.Count() >= hist.Needed(.99) {
		late = "late by p99 " + nanoseconds(g.Lag.Quantile(.99))
	}
	t.Add("generator", "%s of CPU, %s, %s of memory at most", nanoseconds(int64(g.CPU)), late, unit.Format(float64(g.MaxRSS), unit.Bytes))
	return t
}

func count(n uint64) string { return number(float64(n)) }

// times are the quantiles of h that enough stands behind.
func times(h *hist.Hist) string {
	parts := []string{"mean " + unit.Format(h.Mean(), unit.Nanoseconds)}
	for _, q := range []float64{.5, .99} {
		if h.Count() >= hist.Needed(q) {
			parts = append(parts, unit.Quantile(q)+" "+nanoseconds(h.Quantile(q)))
		}
	}
	return strings.Join(parts, ", ")
}

// steps has a row a step.
func (r *report) steps() doc.Table {
	t := doc.Table{Caption: "steps", Unlabelled: true, Columns: []doc.Column{
		{Head: "flow", Key: true, Shrink: true}, {Head: "step", Key: true, Shrink: true}, {Head: "requests", Right: true}, {Head: "errors", Right: true},
		{Head: "mean", Right: true}, {Head: "p50", Right: true}, {Head: "p99", Right: true}, {Head: "max", Right: true},
	}}
	all := r.Result.Requests
	all.Flow = "all"
	for _, o := range append(slices.Clone(r.Result.Steps), all) {
		row := []string{o.Flow, o.Step, count(o.Counts.Scheduled), count(o.Counts.Failed() + o.Counts.Dropped + o.Counts.Unverified)}
		for _, q := range []float64{-1, .5, .99, 1} {
			cell := "–"
			switch h := o.Response; {
			case h.Count() == 0 || h.Count() < hist.Needed(q):
			case q < 0:
				cell = unit.Format(h.Mean(), unit.Nanoseconds)
			default:
				cell = nanoseconds(h.Quantile(q))
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, doc.Row{Cells: doc.Cells(row...), Sum: o.Flow == "all"})
	}
	return t
}

// drifts has a row a figure.
func drifts(all []flow.Drift) doc.Table {
	t := doc.Table{Caption: "drift", Columns: []doc.Column{
		{Head: "figure", Key: true}, {Head: "level", Right: true}, {Head: "growth an hour", Right: true}, {Head: "95 % interval", Right: true}, {Head: "pairs", Right: true}, {Head: "verdict"},
	}}
	for _, d := range all {
		t.Rows = append(t.Rows, doc.Row{Cells: doc.Cells(d.Figure, unit.Format(d.Level, d.Unit), unit.Signed(d.PerHour, d.Unit),
			unit.Signed(d.Interval.Lo, d.Unit)+" to "+unit.Signed(d.Interval.Hi, d.Unit), number(float64(d.Pairs)), string(d.Outcome))})
	}
	return t
}
