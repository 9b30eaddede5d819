package cost

import (
	"cmp"
	"slices"
	"time"
)

// Reason is what a goroutine waits for while it does not run.
type Reason int

// Reasons to wait.
const (
	Scheduler  Reason = iota // for a processor: it could run
	Network                  // for a connection to become ready
	Sleep                    // for a timer
	Lock                     // for a mutex, a condition, a wait group
	Channel                  // for a channel or a select
	Collector                // for the garbage collector
	SystemCall               // in a call into the kernel
	Elsewhere                // for anything else
	reasons
)

var reasonNames = [...]string{"scheduler", "network", "sleep", "lock", "channel", "collector", "system call", "other"}

func (r Reason) String() string { return reasonNames[r] }

// Wait is time that goroutines spent waiting at one place. Of its Stack, Count is
// how often, and Value how many nanoseconds.
type Wait struct {
	Stack  Stack
	Reason Reason
}

// AddWaits charges waits to the bill's items: those within a request, on whose
// stack there is a middleware or handler. Connections that wait for a next
// request wait for nobody's sake. w is the window in which the waits were seen;
// it should count requests if the bill does.
func (b *Bill) AddWaits(waits []Wait, w Window) {
	by, _ := w.divisor()
	if b.rules == nil {
		b.rules = new(Rules)
	}
	sums := map[Owner][reasons]float64{}
	for i := range waits {
		c := b.rules.charge(waits[i].Stack.Frames)
		if !c.inRequest() {
			continue
		}
		id := c.owner.place()
		sum := sums[id]
		sum[waits[i].Reason] += waits[i].Stack.Value / by
		sums[id] = sum
	}
	for id, sum := range sums {
		b.itemOf(id).addWaits(&sum)
	}
	b.Waited = w.Duration.Seconds()
	slices.SortStableFunc(b.Items, func(x, y Item) int {
		return cmp.Or(cmp.Compare(y.Self, x.Self), cmp.Compare(y.Wait, x.Wait), cmp.Compare(x.Owner, y.Owner))
	})
}

// Around returns the owners on a stack, outermost first. The last is the one that
// the stack is charged to; what is around it handed a request on to it. Those that are
// [Enclosed] are of the kind Middleware.
func (o *Rules) Around(frames []Frame) []Owner {
	c := o.charge(frames)
	all := append(c.around, c.owner)
	for i, o := range all {
		if slices.Contains(c.enclosed, o) {
			all[i].Kind = Middleware
		}
	}
	return all
}

// InRequest reports whether a middleware or handler is on a stack: whether what
// is done there is done for a request's sake.
func InRequest(frames []Frame) bool { return new(Rules).charge(frames).inRequest() }

func (c charge) inRequest() bool {
	return c.owner.Kind == Handler || slices.ContainsFunc(c.around, func(o Owner) bool { return o.Kind == Handler })
}

// place is the owner as every source names it: an execution trace does not say
// on which line a function begins.
func (o Owner) place() Owner {
	o = o.seen()
	o.Decl = 0
	return o
}

func (it *Item) addWaits(sum *[reasons]float64) {
	for r := range reasons {
		if sum[r] > 0 {
			it.Wait += sum[r]
			it.Waits = append(it.Waits, WaitShare{r.String(), sum[r]})
		}
	}
	slices.SortStableFunc(it.Waits, func(a, b WaitShare) int { return cmp.Compare(b.Value, a.Value) })
}

// WaitShare is a part of an item's waiting.
type WaitShare struct {
	Reason string  `json:"reason"`
	Value  float64 `json:"ns"`
}

// Over returns the window with its requests scaled to another duration.
func (w Window) Over(d time.Duration) Window {
	if w.Duration <= 0 {
		return Window{Duration: d}
	}
	share := d.Seconds() / w.Duration.Seconds()
	return Window{Duration: d, Requests: w.Requests * share, Margin: w.Margin * share}
}
