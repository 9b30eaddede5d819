package lab_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
)

// Who waits for a service to listen is told for how long at most: no longer than the budget,
// unless that is too short to start a program in.
func TestTellsHowLongItWaits(t *testing.T) {
	for budget, want := range map[time.Duration]string{
		0: "waiting up to 60s for a to listen", 30 * time.Second: "waiting up to 30s for a to listen", time.Second: "waiting up to 10s for a to listen",
	} {
		s := small(t, "ok", "ok")
		for i := range s.Arms {
			s.Arms[i].Listen = "any"
		}
		o := options(t, s)
		o.Budget = budget
		var said []string
		o.Progress = func(e lab.Event) { said = append(said, e.Text) }
		if _, err := lab.Answers(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(said, want) {
			t.Errorf("budget %s: said %q, want %q", budget, said, want)
		}
	}
}
