package doctor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/doctor/proc"
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

// procsRule asks whether the scheduler has more processors than the cgroup's
// quota pays for.
func procsRule() Rule {
	return Rule{
		Name:      "procs",
		Question:  "Is GOMAXPROCS beyond the CPU quota?",
		Threshold: "GOMAXPROCS above the quota, rounded up and no less than 2, and held back in more than 1 % of the periods",
		Remedy:    "build with Go 1.25 or later and no GOMAXPROCS in the environment: the runtime then follows the quota; or set GOMAXPROCS to it",
		Verify:    "tare doctor again: nr_throttled in cpu.stat grows more slowly; response times at p99 fall",
		needs:     []Part{CPUQuota},
		check:     checkProcs,
	}
}

func checkProcs(e *Evidence) ([]Finding, *Missing) {
	first, last := e.Process[0], e.Process[len(e.Process)-1]
	procs, why := maxProcs(&last)
	periods := float64(last.Quota.Periods - first.Quota.Periods)
	held := float64(last.Quota.Throttled - first.Quota.Throttled)
	if procs <= max(2, math.Ceil(last.Quota.CPUs)) || periods <= 0 || held/periods <= 0.01 {
		return nil, nil
	}
	waited := float64(last.Quota.Waited - first.Quota.Waited)
	over := last.At.Sub(first.At)
	by, per := e.requests(over), "request"
	if by == 0 {
		by, per = max(over.Seconds(), 1e-9), "second"
	}
	price := Price{Value: waited / by, Low: waited / by, High: waited / by, Unit: unit.Nanoseconds, Per: per, Of: "waiting"}
	return []Finding{{
		Severity: Warning, Price: &price,
		Title: fmt.Sprintf("GOMAXPROCS is %.0f where the quota pays for %s CPUs", procs, unit.Number(last.Quota.CPUs)),
		Evidence: []Row{
			{What: "GOMAXPROCS, " + why, Value: procs, Unit: unit.Count},
			{What: "quota in CPUs", Value: last.Quota.CPUs, Unit: unit.Count},
			{What: "periods in which it was held back", Value: held / periods, Unit: unit.Share},
			{What: "threads", Value: float64(last.Threads), Unit: unit.Count},
		},
	}}, nil
}

// maxProcs works out GOMAXPROCS from what can be seen from outside: unless the
// program sets it itself, it follows from environment, version and CPUs.
func maxProcs(f *proc.Facts) (n float64, why string) {
	if v, err := strconv.Atoi(f.Environment["GOMAXPROCS"]); err == nil && v > 0 {
		return float64(v), "from the environment"
	}
	switch b := f.Build; {
	case b != nil && slices.Contains(b.Requires, "go.uber.org/automaxprocs"):
		return max(1, math.Floor(f.Quota.CPUs)), "set by automaxprocs"
	case follows(f):
		return min(float64(f.CPUs), max(2, math.Ceil(f.Quota.CPUs))), "which follows the quota since Go 1.25"
	}
	return float64(f.CPUs), "all CPUs that it may run on"
}

// follows reports whether the runtime sets GOMAXPROCS by the quota.
func follows(f *proc.Facts) bool {
	if f.Build == nil {
		return false
	}
	settings := f.Build.Settings["DefaultGODEBUG"] + "," + f.Environment["GODEBUG"] // the latter rules
	at := strings.LastIndex(settings, "containermaxprocs=")
	if at >= 0 {
		return strings.HasPrefix(settings[at:], "containermaxprocs=1")
	}
	minor := strings.TrimPrefix(f.Build.Go, "go1.") // 26.8, 27rc1, 28-devel_0123456
	minor = minor[:len(minor)-len(strings.TrimLeft(minor, "0123456789"))]
	n, err := strconv.Atoi(minor)
	return err == nil && n >= 25
}
