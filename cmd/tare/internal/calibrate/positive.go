package calibrate

import (
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/lab/study"
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
