package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// attribute takes the captures that the study asks for and that no earlier
// session took, as far as the budget goes. It comes after all blocks: a profile
// disturbs what it measures.
func (r *runner) attribute(ctx context.Context) error {
	all := r.Study.Captures(r.Seed)
	if len(all) == 0 {
		return nil
	}
	if err := r.warnCut(""); err != nil {
		return err
	}
	for i, c := range all {
		if r.captured(c) || r.unseen[unseen(c)] {
			continue
		}
		if r.exceeds(r.Study.EstimateCapture(c, Overhead)) {
			return r.warnCut(fmt.Sprintf("%d of %d were taken within %s", len(r.captures), len(all), r.Budget))
		}
		r.reportEvent(Event{
			Stage: Profiling, Arm: c.Arm, Workload: c.Workload, Block: c.Round + 1,
			Text: fmt.Sprintf("capture %d of %d: %s, %s", i+1, len(all), c.Arm, c.Workload),
		})
		if err := r.capture(ctx, c); err != nil {
			return fmt.Errorf("profiling arm %s under workload %s: %w", c.Arm, c.Workload, err)
		}
	}
	return nil
}

// warnCut puts into the manifest how many captures the budget left; "" takes back
// what an earlier session said of it.
func (r *runner) warnCut(text string) error {
	const about = "the budget has cut the captures short: "
	return r.writer.Update(func(m *record.Manifest) {
		m.Warnings = slices.DeleteFunc(m.Warnings, func(w string) bool { return strings.HasPrefix(w, about) })
		if text != "" {
			m.Warnings = append(m.Warnings, about+text)
		}
	})
}

// capturing is about how long those of all captures take that are not on record.
func (r *runner) capturing(all []study.Capture) time.Duration {
	if len(all) == 0 {
		return 0
	}
	left := 0
	for _, c := range all {
		if !r.captured(c) && !r.unseen[unseen(c)] {
			left++
		}
	}
	return time.Duration(left) * study.EstimateCaptures(r.Study, Overhead) / time.Duration(len(all))
}

// captured reports whether a capture is on record.
func (r *runner) captured(c study.Capture) bool {
	return slices.ContainsFunc(r.captures, func(o record.Capture) bool {
		return o.Round == c.Round && o.Arm == c.Arm && o.Workload == c.Workload && slices.Equal(o.Sources, []study.Source{c.Source})
	})
}

// unseen names an arm and the source that cannot look at it.
func unseen(c study.Capture) string { return fmt.Sprint(c.Arm, " ", c.Source) }

// capture takes one capture and puts it on record. What goes wrong with the arm
// makes it invalid; an error means that the run cannot go on.
func (r *runner) capture(ctx context.Context, c study.Capture) error {
	out := record.Capture{
		Seq: len(r.captures), Round: c.Round, Arm: c.Arm, Workload: c.Workload, Sources: []study.Source{c.Source}, Start: time.Now(),
	}
	raw, err := r.observe(ctx, c, &out)
	if ctx.Err() != nil {
		return ctx.Err() // a capture cut short is none
	}
	if err != nil {
		out.Invalid, out.Seen, raw = append(out.Invalid, err.Error()), nil, nil
		r.unseen[unseen(c)] = errors.Is(err, arm.ErrNoControl) || errors.Is(err, errNoSource) // nor could they in another round
	}
	kept, err := r.writer.AppendCapture(out, raw)
	if err != nil {
		return err
	}
	r.captures = append(r.captures, kept)
	return nil
}
