package engines

import (
	"context"
	"time"

	"github.com/tarehq/tare/serve/chain"
)

// LoopContext returns how the in-process loop makes the context that the engine gives a
// request, for arm.Options: nil where that has no place for a chain's state.
//
// serve.Server has one. With Reuse it resets the state for the next request, and
// so does the loop. Without, the state is a part of the memory that the engine
// allocates for a request anyhow, with more room once a request needed that; the
// loop allocates the memory of many requests at a time, so that its bytes and time
// count, but no allocation of their own.
func (e Engine) LoopContext() func() (context.Context, func()) {
	switch e {
	case Serve:
		return func() (context.Context, func()) {
			c := &slotted{Context: context.Background()}
			fresh, roomy := many[chain.State](), many[roomy]()
			last := new(chain.State)
			return c, func() {
				if !last.Crowded() {
					last = fresh()
				} else {
					x := roomy()
					x.Lend(&x.more)
					last = &x.State
				}
				c.slot.Store(last)
			}
		}
	case ServeReuse:
		return func() (context.Context, func()) {
			s := new(chain.State)
			c := &slotted{Context: context.Background()}
			c.slot.Store(s)
			return c, s.Reset
		}
	}
	return nil
}

// roomy is a state with room for the values of many layers.
type roomy struct {
	chain.State
	more chain.Room
}

// many returns a source of new variables, allocated many at a time.
func many[T any]() func() *T {
	var fresh []T
	return func() *T {
		if len(fresh) == 0 {
			fresh = make([]T, 256)
		}
		v := &fresh[0]
		fresh = fresh[1:]
		return v
	}
}

// slotted is a context with a place for the state, as the engine's requests
// have.
type slotted struct {
	context.Context
	slot  chain.Slot
	until time.Time
}

// EndAt keeps the time, as the engine's does until somebody waits.
func (c *slotted) EndAt(until time.Time) { c.until = until }

func (c *slotted) Deadline() (time.Time, bool) { return c.until, !c.until.IsZero() }

func (c *slotted) ChainSlot() *chain.Slot { return &c.slot }

func (c *slotted) Value(key any) any {
	if s := c.slot.Load(); s != nil {
		if v := s.Value(key); v != nil {
			return v
		}
	}
	return c.Context.Value(key)
}
