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
	busy      = "capacity" // the workload
)

// dearerBy is study null with an arm that takes so much more CPU a request than its control,
// apart from the requests and on servers that never idle.
//
// Note: at half of capacity the arm that is busier wakes less often: of 1.85 µs added, a
// request took 1.3 µs more. At capacity, within each request, it took 2.6 to 3 µs more: the
// client sleeps more often, and who answers has to wake it.
func dearerBy(null *study.Study, c *SelftestCmd, added time.Duration) (*study.Study, error) {
	loaded := *null
	loaded.Primary.Workload = busy
	s, err := selfTesting(&loaded, c)
	if err != nil {
		return nil, err
	}
	s.Title, s.AA, s.Primary.Arm = fmt.Sprintf("%s of CPU added to a request", added), false, dearer
	s.Workloads = slices.Clone(s.Workloads)
	for i := range s.Workloads {
		s.Workloads[i].Targets = []study.Target{{Path: "/"}}
	}
	spinning := func(name string, spin time.Duration) study.Arm {
		return study.Arm{Name: name, Go: "./arms/injected", Args: []string{"-alloc", "0", "-aside", "-spin", spin.String()}}
	}
	s.Arms = []study.Arm{spinning(s.Control, leastSpin), spinning(dearer, leastSpin+added)}
	return s, nil
}
