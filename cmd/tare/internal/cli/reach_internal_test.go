package cli

import (
	"errors"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
)

func TestReachEndsLoadThatReachesNobody(t *testing.T) {
	var cause error
	r := Reach{Stop: func(err error) { cause = errors.Join(cause, err) }}
	r.begun = time.Now().Add(-2 * unreached)
	r.Check(load.Counts{Scheduled: 5, Refused: 5})
	if !errors.Is(cause, ErrUnreachable) {
		t.Errorf("refusals for two seconds: got %v, want %v", cause, ErrUnreachable)
	}
	cause = nil
	r.Check(load.Counts{Scheduled: 6, Refused: 5, Reset: 1})
	r.Check(load.Counts{Scheduled: 5, Refused: 5})
	if cause != nil {
		t.Errorf("refusals after a connection: got %v, want the load to go on", cause)
	}
}
