package lab

import (
	"context"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/sample"
	"github.com/tarehq/tare/lab/study"
)

// mostSampled bounds the targets of a workload that are asked for samples.
const mostSampled = 8

// sampleAnswers asks for each target whose body the workload does not verify whole, twice,
// so that a body that is another each time is known for one. What cannot be had is left out.
func (s *session) sampleAnswers(ctx context.Context) (all []record.Answer) {
	for _, g := range s.w.Targets[:min(len(s.w.Targets), mostSampled)] {
		if g.Verify.SHA256 != "" {
			continue
		}
		first, stable, err := answer.FetchTwice(ctx, s.proc.URL(), g)
		if err != nil {
			continue
		}
		all = append(all, record.Answer{
			Target: sample.Target(g), Status: first.Status, Length: first.Length, SHA256: first.SHA256, Stable: stable,
		})
	}
	return all
}

// keepAnswers puts samples taken after the load on record, and warns of what has changed
// under it.
func (s *session) keepAnswers(ctx context.Context, t *record.Trial, before []record.Answer) {
	t.Answers = s.sampleAnswers(ctx)
	t.Warnings = append(t.Warnings, sample.Changed(before, t.Answers)...)
}

// tellUnlike says of which arms the pilot's answers to a workload are unlike the control's.
func (r *runner) tellUnlike(w study.Workload, by map[string][]record.Answer) {
	control := sample.Arm{Name: r.Study.Control, Answers: by[r.Study.Control]}
	for _, a := range r.Study.ArmsOf(w) {
		for _, text := range sample.Unlike(w, sample.Arm{Name: a.Name, Answers: by[a.Name]}, control) {
			r.reportEvent(Event{Stage: Ended, Text: "warning: workload " + w.Name + ": " + text})
		}
	}
}
