package doctor

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tarehq/tare/stats/unit"
)

const (
	patience = 10 * time.Second       // for a header: more is an invitation
	haste    = 200 * time.Millisecond // less, and clients far away fail
	late     = 250 * time.Millisecond // that a time-out may be: it is met when its time is over
)

// timeoutsRule asks how long the server waits for a header that never ends.
func timeoutsRule() Rule {
	return Rule{
		Name:      "timeouts",
		Question:  "Does the server give up on a client that does not finish its header?",
		Threshold: "not within 10 s, or within 200 ms",
		Remedy:    "set http.Server's ReadHeaderTimeout (5 s is usual), and IdleTimeout: without them a few thousand silent connections hold a goroutine, a buffer and a file each for ever",
		Verify:    "tare doctor again: the probe's connection is closed in time",
		needs:     []Part{HalfHeader},
		check: func(e *Evidence) ([]Finding, *Missing) {
			p := e.Probe
			rows := []Row{{What: "half a header was sent to " + p.Addr + " and the connection held for", Value: float64(p.Waited), Unit: unit.Nanoseconds}}
			if p.Answer != "" {
				rows = append(rows, note("the server then answered "+strconv.Quote(p.Answer)))
			}
			switch {
			case p.Closed && p.Waited < haste:
				return []Finding{{Severity: Warning, Evidence: rows, Remedy: "raise ReadHeaderTimeout: a client far away needs several round trips for one header",
					Title: fmt.Sprintf("the server gives up on a header after %s", unit.Format(float64(p.Waited), unit.Nanoseconds))}}, nil
			case p.Closed && p.Waited <= patience+late:
				return nil, nil
			case !p.Closed && p.Waited < patience:
				return nil, &Missing{HalfHeader, fmt.Sprintf("it was still open after %s, which is too early to decide: --for 10s or more", unit.Format(float64(p.Waited), unit.Nanoseconds))}
			}
			title := "the server waits without bound for the end of a header"
			if p.Closed {
				title = fmt.Sprintf("the server waits %s for the end of a header", unit.Format(float64(p.Waited), unit.Nanoseconds))
			}
			return []Finding{{Severity: Serious, Evidence: rows, Title: title}}, nil
		},
	}
}

// verifyQuota is how to see that a quota holds the process back less.
const verifyQuota = "tare doctor again: nr_throttled in cpu.stat grows more slowly; response times at p99 fall"

// quotaRules ask whether the cgroup's quota holds the process back: because the scheduler
// has more processors than it pays for, or because the process needs more.
func quotaRules() []Rule {
	return []Rule{{
		Name:      "procs",
		Question:  "Is GOMAXPROCS beyond the CPU quota?",
		Threshold: "GOMAXPROCS is above the quota (rounded up, at least 2), and the process is held back in more than 1 % of the periods",
		Remedy:    "build with Go 1.25 or later and no GOMAXPROCS in the environment: the runtime then follows the quota; or set GOMAXPROCS to it",
		Verify:    verifyQuota,
		needs:     []Part{CPUQuota},
		check:     checkQuota(true),
	}, {
		Name:      "throttled",
		Question:  "Does the CPU quota hold the process back?",
		Threshold: "the process is held back in more than 1 % of the periods, though GOMAXPROCS is within the quota",
		Remedy:    "raise the quota (a container's CPU limit) or allow bursts (cpu.max.burst); or make requests cheaper, where tare cost shows what they spend",
		Verify:    verifyQuota,
		needs:     []Part{CPUQuota},
		check:     checkQuota(false),
	}}
}

// checkQuota finds a process that is held back, with GOMAXPROCS beyond its quota or within.
// What its threads waited for other programs stands apart from what they waited for the
// quota.
func checkQuota(beyond bool) func(e *Evidence) ([]Finding, *Missing) {
	return func(e *Evidence) ([]Finding, *Missing) {
		first, last := e.Process[0], e.Process[len(e.Process)-1]
		held := float64(last.Quota.Throttled-first.Quota.Throttled) / max(1, float64(last.Quota.Periods-first.Quota.Periods))
		if held <= 0.01 || last.BeyondQuota() != beyond {
			return nil, nil
		}
		price, queued := e.waitedFor(last.Quota.Waited-first.Quota.Waited), e.waitedFor(last.RunDelay-first.RunDelay)
		f := Finding{
			Severity: Warning, Price: &price,
			Title: fmt.Sprintf("the CPU quota holds the process back in %s of its periods", unit.Format(held, unit.Share)),
			Evidence: []Row{
				{What: "quota in CPUs", Value: last.Quota.CPUs, Unit: unit.Count},
				{What: "periods in which it was held back", Value: held, Unit: unit.Share},
				{What: "threads", Value: float64(last.Threads), Unit: unit.Count},
				{What: "threads were ready but waited for a CPU, per " + queued.Per, Value: queued.Value, Unit: unit.Nanoseconds},
			},
		}
		if procs, why := last.MaxProcs(); beyond {
			f.Title = fmt.Sprintf("GOMAXPROCS is %.0f where the quota pays for %s CPUs", procs, unit.Number(last.Quota.CPUs))
			f.Evidence = append([]Row{{What: "GOMAXPROCS, " + why, Value: procs, Unit: unit.Count}}, f.Evidence...)
		}
		return []Finding{f}, nil
	}
}

// waitedFor is the price of what the process waited for altogether.
func (e *Evidence) waitedFor(all time.Duration) Price {
	over := e.Process[len(e.Process)-1].At.Sub(e.Process[0].At)
	by, per := e.requests(over), "request"
	if by == 0 {
		by, per = max(over.Seconds(), 1e-9), "second"
	}
	ns := max(0, float64(all)) / by // threads that end take their delay along
	return Price{Value: ns, Low: ns, High: ns, Unit: unit.Nanoseconds, Per: per, Of: "waiting"}
}
