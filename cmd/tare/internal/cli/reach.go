package cli

import (
	"errors"
	"time"

	"github.com/tarehq/tare/load"
)

// ErrUnreachable ends a load of which no request got a connection.
var ErrUnreachable = errors.New("no connection could be made")

// Reach ends a load that reaches nobody from the start. A target that is away later is
// waited for: that it was is part of what is measured.
type Reach struct {
	Patient bool              // never ends it
	Stop    func(cause error) // called with ErrUnreachable

	begun   time.Time // when Check was first called
	reached bool      // something was answered, or at least connected to
}

// unreached is how long a load may go on without any connection.
const unreached = time.Second

// Check takes the counts so far.
func (r *Reach) Check(c load.Counts) {
	if r.begun.IsZero() {
		r.begun = time.Now()
	}
	r.reached = r.reached || c.Answered()+c.Failed() > c.Refused
	if !r.reached && !r.Patient && c.Refused > 0 && time.Since(r.begun) > unreached {
		r.Stop(ErrUnreachable)
	}
}
