package calibrate

import (
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

const (
	dearer    = "dearer"         // the arm that takes more CPU
	leastSpin = time.Microsecond // in both arms, so that they differ in how much, not in code
	mostSpin  = time.Second
)

// dearerBy is study null with an arm that takes so much more CPU a request than its control.
func dearerBy(null *study.Study, measure, added time.Duration) (*study.Study, error) {
	s, err := selfTesting(null, measure)
	if err != nil {
		return nil, err
	}
	s.Title, s.AA, s.Primary.Arm = fmt.Sprintf("%s of CPU added to a request", added), false, dearer
	s.Workloads = slices.Clone(s.Workloads)
	for i := range s.Workloads {
		s.Workloads[i].Targets = []study.Target{{Path: "/"}}
	}
	spinning := func(name string, spin time.Duration) study.Arm {
		return study.Arm{Name: name, Go: "./arms/injected", Args: []string{"-alloc", "0", "-spin", spin.String()}}
	}
	s.Arms = []study.Arm{spinning(s.Control, leastSpin), spinning(dearer, leastSpin+added)}
	return s, nil
}

// countPositive counts a study of known effect, unless it has too few pairs for an interval.
func countPositive(p *noise.Positive, a *verdict.Analysis) error {
	c, err := counting(a)
	if err != nil {
		return err
	}
	p.Studies++
	p.Shares = append(p.Shares, float64(p.Added)/c.AgainstMedian)
	p.Differences = append(p.Differences, c.Difference.Value)
	if c.Verdict == stats.Slower {
		p.Found++
	}
	if c.Difference.Interval.Contains(float64(p.Added)) {
		p.Holding++
	}
	return nil
}
