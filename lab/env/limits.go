package env

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/internal/cgroup"
)

// limits are the facts of what this process and its children may use.
func limits() []item { return []item{cpuQuota, allowed, memoryBound, descriptors} }

func cpuQuota(s *survey) Fact {
	f := Fact{
		Name: "cpu quota", Value: "none", Verdict: OK,
		Why:    "at its quota a group stands still until the period ends: tens of milliseconds in the tails",
		Remedy: "give whole CPUs (--cpuset-cpus) in place of a quota (--cpus, limits.cpu, CPUQuota=)",
	}
	l, err := cgroup.Read(s.Root, "self")
	if err != nil {
		return f.unknown(untold)
	}
	q := l.CPU
	if q.CPUs == 0 {
		return f
	}
	f.Value = fmt.Sprintf("%.2f of %d CPUs, in periods of %v", q.CPUs, s.online(), q.Period)
	if q.Throttled > 0 {
		f.Value += fmt.Sprintf("; stood still in %d of %d periods, %v in all", q.Throttled, q.Periods, q.Waited.Round(time.Millisecond))
	}
	f.Verdict = Note
	if q.CPUs < float64(s.online()) || q.Throttled > 0 {
		f.Verdict = Disturbs
	}
	return f
}

func allowed(s *survey) Fact {
	f := Fact{
		Name: "cpus allowed", Verdict: OK,
		Why:    "generator and service share these CPUs, whatever the machine has",
		Remedy: "widen the cpuset or the affinity (taskset -p)",
	}
	list := s.keyed("proc/self/status")["Cpus_allowed_list"]
	n, online := counted(list), s.online()
	switch {
	case n == 0:
		return f.unknown(untold)
	case n == 1 && online > 1:
		f.Verdict = Disturbs
	case n < online:
		f.Verdict = Note
	}
	f.Value = fmt.Sprintf("%d of %d: %s", n, online, list)
	return f
}

func memoryBound(s *survey) Fact {
	f := Fact{
		Name: "memory limit", Value: "none", Verdict: OK,
		Why:    "near its limit a group reclaims pages in the middle of requests, beyond it processes are killed",
		Remedy: "raise the limit (--memory, limits.memory, MemoryMax=)",
	}
	l, err := cgroup.Read(s.Root, "self")
	if err != nil {
		return f.unknown(untold)
	}
	if l.Memory == 0 {
		return f
	}
	f.Verdict, f.Value = Note, fmt.Sprintf("%s, %s used", size(l.Memory), size(l.Used))
	if l.Used > l.Memory/10*8 {
		f.Verdict = Disturbs
	}
	return f
}

// size writes bytes for people.
func size(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	if bytes >= 1<<20 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// connections is what the largest built-in load asks for, and what a process
// needs beside them.
const connections, spare = 4000, 96

// descriptors looks at the parent's soft limit: the Go runtime raises its own
// to the hard one, and gives children the limit that it found.
func descriptors(s *survey) Fact {
	f := Fact{
		Name: "descriptors", Verdict: OK,
		Why:    "each connection takes one in the generator and one in the service; without, connections fail",
		Remedy: "ulimit -n 65536; for the hard limit LimitNOFILE= or /etc/security/limits.conf",
	}
	_, hard := files(s.text("proc/self/limits"))
	soft, _ := files(s.text("proc/" + strings.Fields(s.keyed("proc/self/status")["PPid"] + " 0")[0] + "/limits"))
	if hard == 0 {
		return f.unknown(untold)
	}
	f.Value = fmt.Sprintf("hard limit %d", hard)
	if soft > 0 {
		soft = min(soft, hard) // the parent may have more than it left to tare
		f.Value = fmt.Sprintf("soft limit %d, hard limit %d", soft, hard)
	}
	switch {
	case hard < 1024+spare:
		f.Verdict = Disturbs
		f.Value += fmt.Sprintf(": %d connections at most", max(0, hard-spare))
	case hard < connections+spare:
		f.Verdict = Note
		f.Value += fmt.Sprintf(": %d connections at most", hard-spare)
	case soft > 0 && soft < connections+spare:
		f.Verdict = Note
		f.Value += "; Go programs raise the soft one themselves, others do not"
	}
	return f
}

// files reads the limits on open files, 0 if unknown.
func files(limits string) (soft, hard int64) {
	for line := range strings.Lines(limits) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		words := strings.Fields(rest)
		if !ok || len(words) < 2 {
			continue
		}
		return amount(words[0]), amount(words[1])
	}
	return 0, 0
}

func amount(word string) int64 {
	if word == "unlimited" {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
