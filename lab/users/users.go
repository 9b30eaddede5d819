// Package users loads an arm with users who take a flow, and says what came of it as package
// load does of requests.
//
// A workload's flow is read anew for each arm, whose URL its paths belong to. The users'
// schedule, or that of a profile, is stretched to the measured part. The steps of one name
// are one operation, whichever flows they stand in. Whether a trial counts is not decided here.
package users

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/flow"
	"github.com/tarehq/tare/load/flow/script"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// Options say who comes, and where to.
type Options struct {
	Workload study.Workload // has a flow
	Study    string         // file of the study, beside which a feed lies; "" = built in
	Base     string         // URL of the arm
	Load     load.Options   // of these Duration, WarmUp, Slice, Seed, TLS, CPUs, Progress and Mark
}

// Result is what the users saw. Of what package load knows, it lacks the connections, the
// bytes, the first bytes and the requests in flight; Late is all of the lag.
type Result struct {
	*load.Result
	Operations []Operation // in the order in which they are first taken
	Varies     bool        // the users' rate does, so that no state is steady
	Faults     []string    // why the load was not the one asked for
}

// Operation is what became of its requests.
type Operation struct {
	Name     string
	Counts   load.Counts
	Response *hist.Hist // from when a user wanted it → last byte, ns
	Causes   []string   // what went wrong, some of it
}

// followed is how long users are followed after the measured part who have not ended, unless
// their flow says: a trial is a matter of seconds.
const followed = 5 * time.Second

// Run loads the arm. The result is never nil. The error is that of the flow's set-up, or that
// ctx ended before the load began.
func Run(ctx context.Context, o Options) (*Result, error) {
	none := &Result{Result: &load.Result{}}
	f, err := read(o)
	if err != nil {
		return none, fmt.Errorf("the flow of workload %s: %w", o.Workload.Name, err)
	}
	fo := flow.Options{TLS: o.Load.TLS, Seed: o.Load.Seed, Slice: o.Load.Slice, CPUs: o.Load.CPUs, Mark: o.Load.Mark}
	if o.Load.Progress != nil {
		fo.Progress = func(s flow.Snapshot) { o.Load.Progress(snapshot(s)) }
	}
	res, err := flow.Run(ctx, f, fo)
	if err != nil {
		return none, err
	}
	out := &Result{Result: asLoad(res, fo), Varies: varies(f.Users.Arrive)}
	for _, name := range o.Workload.Flow.Operations {
		out.Operations = append(out.Operations, operation(name, res.Steps))
	}
	if n := res.Sessions.Dropped; n > 0 {
		out.Faults = append(out.Faults, fmt.Sprintf("%s turned away, for the most allowed were there", unit.Plural(n, "user")))
	}
	if res.Sessions.Begun == 0 && f.Users.Arrive != nil {
		out.Faults = append(out.Faults, "nobody arrived in the measured part: raise the rate of arrivals, or measure longer")
	}
	return out, nil
}

// read is the flow as it is taken in a trial. The profile breakpoint, which for itself is
// many loads, is a staircase there: four rates, each twice the one before.
func read(o Options) (*script.File, error) {
	w, length := o.Workload, o.Load.Duration
	name := filepath.Join(filepath.Dir(o.Study), w.Flow.File)
	if w.Flow.File == "" {
		name = o.Study
	}
	f, err := script.Parse(name, w.Flow.Says, strings.TrimSuffix(o.Base, "/"))
	if err != nil {
		return nil, err
	}
	switch w.Profile {
	case "":
		f = f.Lasting(length)
	case script.Breakpoint:
		stairs := pace.Steps(length, f.Rate(), 2*f.Rate(), 4*f.Rate(), 8*f.Rate())
		stairs.Random, f.Users.Arrive = f.Users.Arrive.Random, stairs
		f = f.Lasting(length)
	default:
		if f, err = f.As(w.Profile, length); err != nil {
			return nil, err
		}
	}
	f.WarmUp = o.Load.WarmUp
	if f.Drain == 0 {
		f.Drain = followed
	}
	return f, nil
}

// varies reports whether a rate does; nil is a number of users, which stays.
func varies(s *pace.Schedule) bool {
	if s == nil {
		return false
	}
	first := s.Phases[0].From
	for _, p := range s.Phases {
		if p.From != first || p.To != first {
			return true
		}
	}
	return false
}

// asLoad is what came of the requests of all steps.
func asLoad(f *flow.Result, o flow.Options) *load.Result {
	all := &f.Requests
	return &load.Result{
		Started: f.Started, Elapsed: f.Elapsed, Window: f.Window, Ended: f.Ended, Engine: load.Goroutines, Threads: o.Threads(),
		Counts: all.Counts, Response: all.Response, Service: all.Service,
		FirstByte: hist.New(), Connect: hist.New(), Handshake: hist.New(),
		Within: f.Within, Carried: f.Carried, InTime: f.Within,
		Generator: load.Generator{
			CPU: f.Generator.CPU, MaxRSS: f.Generator.MaxRSS, Bound: f.Generator.Bound,
			Lag: f.Generator.Lag, Late: f.Generator.Lag, Unread: hist.New(),
		},
		Series: within(f.Series, f.Window), Warnings: f.Warnings,
	}
}

// within has what ended after the window in the window's last slice, as package load has it.
func within(series []load.Slice, window time.Duration) []load.Slice {
	var kept []load.Slice
	for _, s := range series {
		if s.At < window {
			kept = append(kept, s)
		} else if n := len(kept); n > 0 {
			last := &kept[n-1]
			last.Answered, last.Failed, last.Dropped = last.Answered+s.Answered, last.Failed+s.Failed, last.Dropped+s.Dropped
		}
	}
	return kept
}

// operation draws the steps of a name together.
func operation(name string, steps []flow.Operation) Operation {
	op := Operation{Name: name, Response: hist.New()}
	for i := range steps {
		s := &steps[i]
		if s.Step != name {
			continue
		}
		op.Response.Merge(s.Response)
		op.Causes = append(op.Causes, s.Causes...)
		to, from := &op.Counts, &s.Counts
		for class, n := range from.Status {
			to.Status[class] += n
		}
		for n, add := range map[*uint64]uint64{
			&to.Scheduled: from.Scheduled, &to.Refused: from.Refused, &to.Reset: from.Reset, &to.Timeout: from.Timeout,
			&to.Short: from.Short, &to.Malformed: from.Malformed, &to.Dropped: from.Dropped, &to.Unverified: from.Unverified,
		} {
			*n += add
		}
	}
	return op
}

// snapshot is the state of a load as package load has it; its only response time is the
// median of late.
func snapshot(s flow.Snapshot) load.Snapshot {
	out := load.Snapshot{
		Elapsed: s.Elapsed, Total: s.Total, Counts: s.Counts, Rate: s.Rate, Flight: s.Users - s.Thinking,
		Response: hist.New(), Service: hist.New(),
	}
	if s.P50 > 0 {
		out.Response.Record(int64(s.P50))
		out.Service.Record(int64(s.P50))
	}
	return out
}

// Metrics adds what is known of the requests that only users tell apart; response times,
// which the generator's lag may void, are not among it.
func (r *Result) Metrics(m map[string]float64) {
	m["status_4xx"] = refused(&r.Counts)
	for i := range r.Operations {
		op := &r.Operations[i]
		c := &op.Counts
		if c.Scheduled == 0 {
			continue
		}
		m[op.Name+"/errors"] = float64(c.Failed()+c.Dropped+c.Unverified) / float64(c.Scheduled)
		m[op.Name+"/status_4xx"] = refused(c)
		if all := r.Response.Mean(); op.Response.Count() > 0 && all > 0 {
			m[op.Name+"/relative_mean"] = op.Response.Mean() / all
		}
	}
}

// refused is the share of the answers with a status of 4xx.
func refused(c *load.Counts) float64 { return float64(c.Status[4]) / float64(max(1, c.Answered())) }
