package exectrace

import (
	"fmt"
	"strings"

	"golang.org/x/exp/trace"

	"github.com/tarehq/tare/cost"
)

// State is what a request was at, at one moment.
type State int

// States of a request.
const (
	Running    State = iota // on one of Go's processors; when the kernel ran another thread meanwhile is not traced
	Runnable                // it could run, and no processor was free
	Collecting              // it helped the garbage collector, or waited for it
	Locked                  // for a mutex, a condition, a wait group
	Channel                 // for a channel or a select
	Calling                 // for the network, in a call to another service
	Client                  // for the network: whoever sent the request
	Sleeping                // for a timer
	Kernel                  // in a system call
	Waiting                 // for anything else
	states
)

var stateNames = [...]string{
	"running", "scheduler", "collector", "lock", "channel", "call", "client", "sleep", "system call", "other",
}

func (s State) String() string { return stateNames[s] }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("no state of a request: %q", text)
}

// settled is how things stand once a goroutine has come to to: in which state it
// is there, given why it left off running and where.
func settled(to trace.GoState, reason string, at *site) State {
	switch to {
	case trace.GoRunning:
		return Running
	case trace.GoRunnable:
		return Runnable
	case trace.GoSyscall:
		return Kernel
	}
	kind := cost.Other
	if at != nil {
		kind = at.label.owner.Kind
	}
	if reason == "" && at != nil {
		reason = guess(at.frames)
	}
	switch reasonOf(reason) {
	case cost.Network:
		if kind == cost.Engine {
			return Client
		}
		return Calling
	case cost.Sleep:
		return Sleeping
	case cost.Lock:
		return Locked
	case cost.Channel:
		if kind == cost.Client { // net/http's client reads on a goroutine of its own
			return Calling
		}
		return Channel
	case cost.Collector:
		return Collecting
	case cost.Scheduler:
		return Runnable
	}
	return Waiting
}

// guess tells why a goroutine waits by where it does: the trace does not say why
// those wait that did so before it began.
func guess(frames []cost.Frame) string {
	for _, f := range frames {
		for _, known := range [...]struct{ prefix, reason string }{
			{"runtime.chan", "chan receive"},
			{"runtime.selectgo", "select"},
			{"sync.", "sync"},
			{"internal/sync.", "sync"},
			{"internal/poll.", "network"},
			{"time.Sleep", "sleep"},
			{"runtime.gcAssist", "GC"},
		} {
			if strings.HasPrefix(f.Func, known.prefix) {
				return known.reason
			}
		}
		if !strings.HasPrefix(f.Func, "runtime.") {
			break
		}
	}
	return ""
}
