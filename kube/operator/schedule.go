package operator

import (
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"

	"github.com/robfig/cron/v3"
)

// schedulePlan is what a spec says of times.
type schedulePlan struct {
	schedule        cron.Schedule // nil: once for each spec
	zone            *time.Location
	deadline, ready time.Duration
}

// parsePlan reads what the schema cannot check, such as the minute 61. Where there is an
// error, the times that are left have their defaults.
func parsePlan(s *v1alpha1.RunSpec) (schedulePlan, error) {
	p := schedulePlan{zone: time.UTC, deadline: v1alpha1.DefaultDeadline, ready: v1alpha1.DefaultReady}
	set := func(field, text string, to *time.Duration) error {
		if text == "" {
			return nil
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("spec.%s: %q is not a duration such as 10m", field, text)
		}
		*to = d
		return nil
	}
	if err := set("deadline", s.Deadline, &p.deadline); err != nil {
		return p, err
	}
	if s.Specimen != nil {
		if err := set("specimen.readyWithin", s.Specimen.ReadyWithin, &p.ready); err != nil {
			return p, err
		}
	}
	if s.Schedule == "" {
		return p, nil
	}
	if s.TimeZone != "" {
		zone, err := time.LoadLocation(s.TimeZone)
		if err != nil {
			return p, fmt.Errorf("spec.timeZone: %q is not a time zone such as Europe/Berlin", s.TimeZone)
		}
		p.zone = zone
	}
	if strings.Contains(s.Schedule, "=") { // an older definition let it through, and of "TZ=x" the parser panics
		return p, fmt.Errorf("spec.schedule: %q: name the zone in spec.timeZone", s.Schedule)
	}
	schedule, err := cron.ParseStandard(s.Schedule)
	if err != nil {
		return p, fmt.Errorf("spec.schedule: %q: %w", s.Schedule, err)
	}
	p.schedule = schedule
	return p, nil
}

// nextAfter is the first tick after a time; zero if there is none within five years.
func (p *schedulePlan) nextAfter(t time.Time) time.Time { return p.schedule.Next(t.In(p.zone)) }

// farthest is how far back a tick is looked for: ticks that are farther apart nextAfter does not
// find either.
const farthest = 5 * 366 * 24 * time.Hour

// lastTick is the last tick after from that is not after now. Those before it were missed,
// and are not made up for. It looks back from now, twice as far each time: where a clock was
// wrong, from may be decades ago.
func (p *schedulePlan) lastTick(from, now time.Time) (tick time.Time, due bool) {
	if oldest := now.Add(-farthest); from.Before(oldest) {
		from = oldest
	}
	for back, start := time.Minute, now; !due && start.After(from); back *= 2 {
		if start = now.Add(-back); start.Before(from) {
			start = from
		}
		for next := p.nextAfter(start); !next.IsZero() && !next.After(now); next = p.nextAfter(next) {
			tick, due = next, true
		}
	}
	return tick, due
}
