package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// waited is the waiting within requests that matches, for one request, or one
// second if nobody counted.
func (e *Evidence) waited(about func(*cost.Wait) bool) (p Price, times float64) {
	by, per := e.tracedPer()
	var a cost.Amount
	for i := range e.Waits {
		w := &e.Waits[i]
		if !cost.InRequest(w.Stack.Frames) || symptom.Instrument(w.Stack.Frames) || !about(w) {
			continue
		}
		a.Count += w.Stack.Count
		a.Value += w.Stack.Value
	}
	p = Price{Value: a.Value, Low: a.Value - a.Margin(), High: a.Value + a.Margin(), Unit: unit.Nanoseconds, Per: per, Of: "waiting"}.times(1 / by)
	if whole := e.took(); whole > 0 {
		p.Share = min(1, p.Value/whole)
	}
	return p, a.Count
}

func (e *Evidence) tracedPer() (float64, string) {
	if e.Traced.Requests > 0 {
		return e.Traced.Requests, "request"
	}
	return e.Traced.Duration.Seconds(), "second"
}

// took is how long a request takes: as the load saw it, else what it waits and
// what it computes. Per second it is how many were under way at a time.
func (e *Evidence) took() float64 {
	by, per := e.tracedPer()
	if per == "request" && e.Latency > 0 {
		return float64(e.Latency)
	}
	var all float64
	for i := range e.Waits {
		if w := &e.Waits[i]; cost.InRequest(w.Stack.Frames) && !symptom.Instrument(w.Stack.Frames) {
			all += w.Stack.Value
		}
	}
	if n, _ := e.per(); e.has(CPUProfile) {
		return all/by + e.cpu().Value/n
	}
	return all / by
}

// waitRows says where the waiting that matches was done.
func (e *Evidence) waitRows(about func(*cost.Wait) bool, at symptom.Match) []Row {
	var stacks []cost.Stack
	for i := range e.Waits {
		if w := &e.Waits[i]; cost.InRequest(w.Stack.Frames) && about(w) {
			stacks = append(stacks, w.Stack)
		}
	}
	rows := e.places(stacks, at, unit.Nanoseconds)
	by, _ := e.tracedPer()
	n, _ := e.per()
	for i := range rows {
		rows[i].Value *= n / by // places divides by the profile's window
	}
	return rows
}

// slow is the share of a request's time beyond which waiting counts.
const slow = 0.05

// loggingRule asks whether requests wait until their log line is written, or for
// the one lock under which all of them write.
func loggingRule() Rule {
	return Rule{
		Name:      "logging",
		Question:  "Do requests wait for the log?",
		Threshold: "more than 5 % of a request's time; the sink is slow if a line takes it more than 20 µs",
		Verify:    verifyWait,
		needs:     []Part{ExecutionTrace},
		traffic:   true,
		check:     checkLogging,
	}
}

func checkLogging(e *Evidence) ([]Finding, *Missing) {
	queue := func(w *cost.Wait) bool { return symptom.Logging(w.Stack.Frames) >= 0 && w.Reason == cost.Lock }
	write := func(w *cost.Wait) bool {
		return symptom.Logging(w.Stack.Frames) >= 0 && w.Reason != cost.Lock && w.Reason != cost.Scheduler && w.Reason != cost.Collector
	}
	both := func(w *cost.Wait) bool { return queue(w) || write(w) }
	price, times := e.waited(both)
	if times == 0 {
		return nil, nil
	}
	f := Finding{
		Severity: weigh(price, e.took(), slow), Price: &price, Evidence: e.waitRows(both, symptom.Logging),
		Title:  fmt.Sprintf("requests wait %s for the logger's lock", unit.Format(price.Value, unit.Nanoseconds)),
		Remedy: "log less per request, or hand lines to a writer that buffers: all requests write under the logger's one lock",
	}
	by, _ := e.tracedPer()
	written, lines := e.waited(write)
	if lines > 0 && written.Value*by/lines > float64(20*time.Microsecond) {
		f.Title = fmt.Sprintf("requests wait %s for a slow log", unit.Format(price.Value, unit.Nanoseconds))
		f.Remedy = "hand log lines to a buffer that a goroutine of its own empties, with a bound beyond which lines are counted and dropped; or mend the sink"
		f.Evidence = append(f.Evidence, Row{What: "each line that the sink is slow to take", Value: written.Value * by / lines, Unit: unit.Nanoseconds})
	}
	if queued, n := e.waited(queue); n > 0 {
		f.Evidence = append(f.Evidence, Row{What: "of it, in the queue for the logger's lock", Value: queued.Value, Unit: unit.Nanoseconds})
	}
	return []Finding{f}, nil
}

// wait is what a rule takes for one kind of waiting.
type wait struct {
	name, question, title, remedy string
	least                         float64 // share of a request's time
	of                            []cost.Reason
	at                            symptom.Match // it, on a stack
}

// What stacks have where requests wait.
var (
	locks   = symptom.Calls("sync.(*Mutex)", "internal/sync.(*Mutex)", "sync.(*RWMutex)") // wait groups and such wait for work, not for each other
	asleep  = symptom.Calls("time.Sleep")
	queuing = symptom.Calls("runtime.chansend", "golang.org/x/sync/semaphore.", "database/sql.(*DB).conn", "github.com/jackc/puddle/",
		"github.com/redis/go-redis/v9/internal/pool.", "github.com/go-redis/redis/v8/internal/pool.")
	calling = symptom.Calls("net/http.(*Client).", "net/http.(*Transport).", "net.(*Resolver).", "net.(*Dialer).", "database/sql.",
		"google.golang.org/grpc.(*ClientConn)", "github.com/jackc/pgx", "github.com/redis/go-redis/", "github.com/go-redis/redis/")
	syncing = symptom.Calls("os.(*File).Sync", "syscall.Fsync", "syscall.Fdatasync", "golang.org/x/sys/unix.Fsync", "golang.org/x/sys/unix.Fdatasync")
)

// waitRules ask what requests wait for; what a logger waits for is the logging rule's.
func waitRules() []Rule {
	kinds := []wait{
		{"mutex", "Do requests wait for each other's locks?", "requests wait %s for locks",
			"hold the lock for less: compute, write and log outside it; split it by key; for what is mostly read keep a value behind atomic.Pointer", slow, []cost.Reason{cost.Lock}, locks},
		{"sleep", "Do requests sleep?", "requests sleep %s",
			"wait for what is waited for, by a channel or a context; a sleep below a millisecond takes about one when the service is idle, since that is how exact the runtime's poller is", slow, []cost.Reason{cost.Sleep}, asleep},
		{"queue", "Do requests wait for a place in a pool or at a semaphore?", "requests wait %s for a place in a pool or at a semaphore",
			"make the pool as large as what is behind it serves at once (SetMaxOpenConns, PoolSize), or hold a place for less; if it protects something that is full, refuse requests early", slow, []cost.Reason{cost.Channel, cost.Lock, cost.Sleep}, queuing},
		{"call", "Do requests do little but wait for another service or for DNS?", "requests wait %s for other services",
			"look at the other service first; then keep its connections open, ask it once for several things or at the same time, cache what may be old, and set a time limit", 0.8, []cost.Reason{cost.Network, cost.Channel}, calling},
		{"fsync", "Do requests wait until a disk has what they wrote?", "requests wait %s for fsync",
			"sync once for several requests (group commit), or answer before it where the loss of the last moments is allowed", slow, []cost.Reason{cost.SystemCall}, syncing},
	}
	rules := make([]Rule, len(kinds))
	for i, k := range kinds {
		rules[i] = Rule{
			Name: k.name, Question: k.question, Remedy: k.remedy, Verify: verifyWait,
			Threshold: fmt.Sprintf("more than %.0f %% of a request's time", 100*k.least),
			needs:     []Part{ExecutionTrace}, traffic: true, check: k.check,
		}
	}
	return rules
}

// about reports whether a wait is of the kind. A queue on the way to a service is no call.
func (k wait) about(w *cost.Wait) bool {
	frames := w.Stack.Frames
	return slices.Contains(k.of, w.Reason) && symptom.Logging(frames) < 0 && k.at(frames) >= 0 &&
		(k.name != "call" || w.Reason == cost.Network || queuing(frames) < 0)
}

func (k wait) check(e *Evidence) ([]Finding, *Missing) {
	price, times := e.waited(k.about)
	if times == 0 {
		return nil, nil
	}
	by, _ := e.tracedPer()
	rows := append(e.waitRows(k.about, k.at), Row{What: "each time", Value: price.Value * by / times, Unit: unit.Nanoseconds})
	if k.name == "mutex" {
		for _, r := range e.places(e.Contention, k.at, unit.Nanoseconds) {
			r.What = "held by " + r.What
			rows = append(rows, r)
		}
	}
	return []Finding{{Severity: weigh(price, e.took(), k.least), Price: &price, Evidence: rows,
		Title: fmt.Sprintf(k.title, unit.Format(price.Value, unit.Nanoseconds))}}, nil
}
