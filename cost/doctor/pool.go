package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// poolRule asks whether sync.Pools do what they are for. A pool whose New runs
// for most requests is a detour to the allocator: what it gave out did not come
// back.
func poolRule() Rule {
	return Rule{
		Name:     "pool",
		Question: "Do sync.Pools hand out what was put back?",
		Threshold: "New runs for more than a twentieth of the requests, takes more than 1 % of the CPU, and runs more often than collections explain. " +
			"They explain four objects for each processor, and one for each request in flight, a collection",
		Remedy: "put the object back on every way out of the function, also after errors; look at Put's argument: the same type as New's, and not a new one",
		Verify: "tare cost under the same load: the bytes that New allocates go away",
		needs:  []Part{CPUProfile, BusyService, AllocationProfile},
		check:  checkPool,
	}
}

// user is one place that takes objects from pools.
type user struct {
	frame cost.Frame
	made  map[string]float64 // objects by where New allocated them
	bytes float64
}

// misses is how often New ran: an object each time at the place where the most
// were allocated.
func (u *user) misses() float64 {
	var n float64
	for _, m := range u.made {
		n = max(n, m)
	}
	return n
}

func checkPool(e *Evidence) ([]Finding, *Missing) {
	var found []Finding
	by, per := e.per()
	allowed, drained := e.drained()
	for _, u := range poolUsers(e.Allocs) {
		missed := u.misses()
		if missed <= max(allowed, 0.05*e.Window.Requests) {
			continue
		}
		price := e.spent(u.calls(get, u.frame.Line))
		rows := []Row{
			{What: "taken by " + u.frame.Name(), Where: shortPlace(u.frame), Value: missed / by, Unit: unit.Count},
			{What: "allocated by New per " + per, Value: u.bytes / by, Unit: unit.Bytes},
			drained,
		}
		if n := sum(e.CPU, u.calls(put, 0)).Count; n > 0 {
			rows = append(rows, note("objects are put back there, but others than are asked for, or by copies"))
		}
		found = append(found, Finding{
			Severity: e.weighCPU(price, 0.01), Price: &price,
			Title:    fmt.Sprintf("the pool that %s takes from is empty %s times per %s", u.frame.Name(), unit.Number(missed/by), per),
			Evidence: rows,
		})
	}
	return found, nil
}

// drained is how often New may run since collections empty pools: an object
// lives through one collection without being asked for and goes with the next.
func (e *Evidence) drained() (allowed float64, row Row) {
	cycles := e.Window.Duration.Seconds() // without statistics: one a second
	if e.has(MemoryStatistics) {
		cycles = e.Memory[len(e.Memory)-1].Cycles - e.Memory[0].Cycles
	}
	procs := 2
	if e.has(ProcessFacts) {
		procs = max(1, e.Process[0].CPUs)
	}
	allowed = (1 + cycles) * float64(4*procs+e.Busy)
	return allowed, Row{What: "misses that collections explain, in the whole window", Value: allowed, Unit: unit.Count}
}

const get, put = "sync.(*Pool).Get", "sync.(*Pool).Put"

// poolUsers finds who takes objects from pools that had to be made. Users in the
// standard library are left out: their pools are right, and fill with the rest.
func poolUsers(allocs []cost.Stack) []*user {
	users := map[cost.Frame]*user{}
	for i := range allocs {
		frames := allocs[i].Frames
		at := slices.IndexFunc(frames, func(f cost.Frame) bool { return f.Func == get })
		if at < 1 || at+1 >= len(frames) || frames[at+1].Standard() || symptom.Instrument(frames) {
			continue
		}
		f := frames[at+1]
		if users[f] == nil {
			users[f] = &user{frame: f, made: map[string]float64{}}
		}
		users[f].made[frames[0].Func+shortPlace(frames[0])] += allocs[i].Count
		users[f].bytes += allocs[i].Value
	}
	all := make([]*user, 0, len(users))
	for _, u := range users {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *user) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.frame.Func, b.frame.Func), cmp.Compare(a.frame.Line, b.frame.Line))
	})
	return all
}

// calls matches the stacks on which this user calls a method of a pool, on one line unless
// that is 0.
func (u *user) calls(method string, line int) symptom.Match {
	return func(frames []cost.Frame) int {
		for i := 1; i < len(frames); i++ {
			if f := frames[i]; f.Func == u.frame.Func && (line == 0 || f.Line == line) && frames[i-1].Func == method {
				return i
			}
		}
		return -1
	}
}

// buffersRule asks after memory that requests leave behind and no later request
// allocates: buffers that grew to the largest request and stay in a pool.
func buffersRule() Rule {
	return Rule{
		Name:      "buffers",
		Question:  "Do pooled buffers stay as large as the largest request made them?",
		Threshold: "objects of 64 KiB or more on the average, grown within requests, that stay in use while others come and go: 4 MiB and a fifth of the heap",
		Remedy:    "drop a buffer in place of putting it back when its capacity is beyond a bound, such as 64 KiB; a cache that is to keep them looks the same",
		Verify:    "tare doctor again: the heap in use falls by the price",
		needs:     []Part{LiveHeap, AllocationProfile},
		traffic:   true,
		check:     checkBuffers,
	}
}

const (
	largeObject = 64 << 10
	muchKept    = 4 << 20
	partKept    = 0.2
)

// kept is what was grown at one place and is there at the beginning, at the end,
// and allocated in between.
type kept struct{ before, after, fresh cost.Amount }

// stays reports whether it is the same memory all the time: what is allocated
// anew again and again was on its way out whenever it was seen.
func (k *kept) stays() bool {
	return k.before.Count > 0 && k.after.Count > 0 && k.fresh.Value <= 4*k.after.Value
}

func (e *Evidence) kept() map[cost.Frame]*kept {
	sites := map[cost.Frame]*kept{}
	add := func(stacks []cost.Stack, part func(*kept) *cost.Amount) {
		for i := range stacks {
			at := symptom.Growing(stacks[i].Frames)
			if at < 0 {
				continue
			}
			f := stacks[i].Frames[at]
			if sites[f] == nil {
				sites[f] = &kept{}
			}
			a := part(sites[f])
			a.Count += stacks[i].Count
			a.Value += stacks[i].Value
		}
	}
	add(e.Live[0], func(k *kept) *cost.Amount { return &k.before })
	add(e.live(), func(k *kept) *cost.Amount { return &k.after })
	add(e.Allocs, func(k *kept) *cost.Amount { return &k.fresh })
	return sites
}

func checkBuffers(e *Evidence) ([]Finding, *Missing) {
	whole := sum(e.live(), nil).Value
	var found []Finding
	for f, k := range e.kept() {
		if !k.stays() || k.after.Value/k.after.Count < largeObject {
			continue
		}
		stay := min(k.before.Value, k.after.Value)
		price := Price{Value: stay, Low: stay, High: k.after.Value, Unit: unit.Bytes, Of: "memory kept", Share: stay / whole}
		severity := Cheap
		if stay >= muchKept && price.Share >= partKept {
			severity = Warning
		}
		each := unit.Format(k.after.Value/k.after.Count, unit.Bytes)
		found = append(found, Finding{
			Severity: severity, Price: &price,
			Title: fmt.Sprintf("buffers of %s each, grown in %s, stay in memory", each, f.Name()),
			Evidence: []Row{
				{What: "in use, grown in " + f.Name(), Where: shortPlace(f), Value: k.after.Value, Unit: unit.Bytes},
				{What: "allocated there meanwhile", Value: k.fresh.Value, Unit: unit.Bytes},
			},
		})
	}
	return dearestFirst(found), nil
}
