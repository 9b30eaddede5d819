package env

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// neighbours are the facts of what else runs.
func neighbours() []item {
	return []item{
		steal, inUse, busiest, load,
		stalled("cpu", "for that share of the time a task waited for a CPU that another one had; response times contain the wait", "stop what competes for CPUs (see busy processes)"),
		stalled("memory", "for that share of the time a task waited until memory was reclaimed", "stop programs that use memory, or add some"),
		stalled("io", "for that share of the time a task waited for a disk; arms that log to files wait, too", "stop what reads or writes; keep runs on another disk"),
	}
}

func steal(s *survey) Fact {
	f := Fact{
		Name: "steal", Verdict: OK,
		Why:    "the host gave this machine's CPU time to another one, in the middle of requests",
		Remedy: "measure at another time, or on an instance with dedicated CPUs",
	}
	if s.after.times.total() == 0 {
		return f.unknown(untold)
	}
	if !s.sampled() {
		return f.unknown(unsampled)
	}
	boot := share(s.after.times.Stolen, s.after.times.total())
	now := share(s.after.times.Stolen-s.before.times.Stolen, s.after.times.total()-s.before.times.total())
	f.Value = fmt.Sprintf("%.1f %% now, %.1f %% since boot", 100*now, 100*boot)
	switch {
	case now >= 0.01:
		f.Verdict = Disturbs
	case boot >= 0.01:
		f.Verdict = Note
	}
	return f
}

func share(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Shares of one CPU that others use, from which a fact is more than ok. A quiet
// server's own housekeeping stays below the first.
const (
	notable    = 0.03
	disturbing = 0.10
)

func used(cpu float64) Verdict {
	switch {
	case cpu >= disturbing:
		return Disturbs
	case cpu >= notable:
		return Note
	}
	return OK
}

// inUse counts the kernel's own work too, and processes that have ended or cannot be seen.
func inUse(s *survey) Fact {
	f := Fact{
		Name:   "cpu in use",
		Why:    "other work takes CPUs, caches and memory bandwidth from generator and service",
		Remedy: "stop other programs (see busy processes) or wait until they have finished",
	}
	if s.after.times.total() == 0 {
		return f.unknown(untold)
	}
	if !s.sampled() {
		return f.unknown(unsampled)
	}
	ran := map[bool]time.Duration{} // by whether it is tare
	for pid, p := range s.ran() {
		ran[s.own(pid)] += p
	}
	cpu := max(0, share(s.after.times.Busy-s.before.times.Busy-ran[true], s.span))
	f.Verdict, f.Value = used(cpu), fmt.Sprintf("%.2f of %d CPUs, tare apart", cpu, max(s.online(), 1))
	if hidden := cpu - share(ran[false], s.span); f.Verdict != OK && hidden > cpu/2 {
		f.Value, f.Remedy = fmt.Sprintf("%s, %.2f of it by processes that have ended or cannot be seen from here", f.Value, hidden), "wait until short programs such as builds have finished; if this is a container, look at its host"
	}
	return f
}

// ran returns the CPU time that each process used between the two looks.
func (s *survey) ran() map[int]time.Duration {
	ran := map[int]time.Duration{}
	for pid, p := range s.after.processes {
		if old := s.before.processes[pid]; old.Started == p.Started {
			p.CPU -= old.CPU
		}
		if p.CPU > 0 {
			ran[pid] = p.CPU
		}
	}
	return ran
}

// own reports whether a process is tare or descends from it.
func (s *survey) own(pid int) bool {
	for range len(s.after.processes) { // as deep as a line of descent can be
		if pid == s.PID {
			return true
		}
		p, ok := s.after.processes[pid]
		if !ok {
			return false
		}
		pid = p.Parent
	}
	return false
}

func busiest(s *survey) Fact {
	f := Fact{
		Name: "busy processes", Value: "none", Verdict: OK,
		Why:    "they are what competes with generator and service",
		Remedy: "stop them, or wait until they have finished",
	}
	if len(s.after.processes) == 0 {
		return f.unknown(untold)
	}
	if !s.sampled() {
		return f.unknown(unsampled)
	}
	ran := s.ran()
	var pids []int
	for pid, cpu := range ran {
		if !s.own(pid) && share(cpu, s.span) >= notable {
			pids = append(pids, pid)
		}
	}
	slices.SortFunc(pids, func(a, b int) int {
		return cmp.Or(cmp.Compare(ran[b], ran[a]), cmp.Compare(a, b))
	})
	var top []string
	for _, pid := range pids {
		if cpu := share(ran[pid], s.span); used(cpu).Grave() < f.Verdict.Grave() {
			f.Verdict = used(cpu)
		}
		top = append(top, fmt.Sprintf("%s (%d) %.0f %%", printable(s.after.processes[pid].Name), pid, 100*share(ran[pid], s.span)))
	}
	if len(top) > 3 {
		top = append(top[:3], fmt.Sprintf("%d more", len(pids)-3))
	}
	_, all := s.after.processes[1]
	switch {
	case top != nil:
		f.Value = strings.Join(top, ", ")
	case !all: // /proc is mounted with hidepid
		return f.unknown("other users' processes cannot be seen; run as root to see them")
	}
	return f
}

// printable keeps a process's name, which is its owner's choice, from writing
// control characters to a terminal.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}

func load(s *survey) Fact {
	f := Fact{
		Name: "load average", Verdict: OK,
		Why:    "what ran or waited over 1, 5 and 15 minutes: was this second's quiet usual?",
		Remedy: "if it was not tare itself, find out what ran before a long run",
	}
	words := strings.Fields(s.text("proc/loadavg"))
	if len(words) < 3 {
		return f.unknown(untold)
	}
	minute, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		return f.unknown(untold)
	}
	f.Value = strings.Join(words[:3], " ")
	// Never more than a note: it is the past, and often tare's own.
	if minute/float64(max(s.online(), 1)) >= 0.25 {
		f.Verdict = Note
	}
	return f
}

// stalled judges a resource's pressure now; what was in the last ten seconds but
// is over is a note.
func stalled(resource, why, remedy string) item {
	return func(s *survey) Fact {
		f := Fact{Name: resource + " pressure", Verdict: OK, Why: why, Remedy: remedy}
		p, ok := s.after.stalled[resource]
		switch {
		case !ok:
			return f.unknown("not reported: it takes Linux 4.20 or later, booted with psi=1")
		case !s.sampled():
			return f.unknown(unsampled)
		}
		// The kernel counts up to a moment of its own, somewhat before the look.
		now := min(100, 100*share(p.total-s.before.stalled[resource].total, s.span))
		f.Value = fmt.Sprintf("%.1f %% of the time now, %.1f %% in the last 10 s", now, p.avg10)
		switch {
		case now >= 2:
			f.Verdict = Disturbs
		case now >= 0.5, p.avg10 >= 2:
			f.Verdict = Note
		}
		return f
	}
}
