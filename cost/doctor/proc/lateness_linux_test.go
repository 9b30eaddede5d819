package proc_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/cost/doctor/proc"
)

// TestLateness has timers ring 2,000 times a second: none rings before its time, and
// some within the time of a hundred.
func TestLateness(t *testing.T) {
	const hz = 2000
	begun := time.Now()
	late := proc.Lateness(hz)
	took := time.Since(begun)
	if late <= 0 || late > 100*time.Second/hz {
		t.Errorf("timers ring %v late, want more than nothing and at most %v", late, 100*time.Second/hz)
	}
	if least := 15 * time.Second / hz; took < least {
		t.Errorf("15 timers took %v, want at least %v", took, least)
	}
}
