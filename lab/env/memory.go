package env

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/stats/unit"
)

// memory are the facts of how pages are had.
func memory() []item { return []item{available, swap, hugePages, watchedPages, randomised} }

func available(s *survey) Fact {
	f := Fact{
		Name: "memory", Verdict: OK,
		Why:    "short of memory the kernel reclaims pages in the middle of requests",
		Remedy: "close programs that use memory, or add some",
	}
	info := s.keyed("proc/meminfo")
	total, free := first(info["MemTotal"])<<10, first(info["MemAvailable"])<<10
	if total <= 0 || free < 0 {
		return f.unknown(untold)
	}
	f.Value = fmt.Sprintf("%s of %s available", size(free), size(total))
	switch {
	case free < total/20 || free < 256<<20:
		f.Verdict = Disturbs
	case free < total/5 || free < 1<<30:
		f.Verdict = Note
	}
	return f
}

func swap(s *survey) Fact {
	f := Fact{
		Name: "swap", Value: "none", Verdict: OK,
		Why:    "a page that has to come back from disk takes longer than most requests",
		Remedy: "sudo swapoff -a",
	}
	info := s.keyed("proc/meminfo")
	total := first(info["SwapTotal"]) << 10
	used := total - first(info["SwapFree"])<<10
	switch {
	case info["SwapTotal"] == "":
		return f.unknown(untold)
	case total <= 0:
		return f
	}
	f.Value = fmt.Sprintf("%s of %s used", size(used), size(total))
	switch moved := s.after.swapped - s.before.swapped; {
	case moved > 0:
		f.Verdict = Disturbs
		f.Value += ", " + unit.Plural(moved, "page") + " moved in the last second"
	case used > 0:
		f.Verdict = Note
	}
	return f
}

func hugePages(s *survey) Fact {
	const dir = "sys/kernel/mm/transparent_hugepage/"
	f := Fact{
		Name: "huge pages", Verdict: OK,
		Why:    "given to every program, they make memory figures larger and have the kernel copy pages while measuring",
		Remedy: "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
	}
	enabled := chosen(s.text(dir + "enabled"))
	if enabled == "" {
		return f.unknown(untold)
	}
	f.Value = enabled
	if defrag := chosen(s.text(dir + "defrag")); defrag != "" {
		f.Value += ", defrag " + defrag
	}
	if enabled == "always" {
		f.Verdict = Note
	}
	return f
}

// chosen returns the word in brackets, as in "always [madvise] never".
func chosen(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// watchedPages tells of DAMON, the kernel's data access monitor, which a host may have
// switched on in its guests to learn what memory they can spare.
func watchedPages(s *survey) Fact {
	const (
		watchers = "sys/kernel/mm/damon/admin/kdamonds/*/state"
		modules  = "sys/module/damon_*/parameters/enabled"
	)
	f := Fact{
		Name: "page watching", Value: "none", Verdict: OK,
		Why:    "the kernel's thread kdamond takes a CPU for milliseconds at a time; at 1 % of a CPU that is what p99 shows",
		Remedy: "echo off | sudo tee /sys/kernel/mm/damon/admin/kdamonds/*/state, or read no tail below 5 ms from this machine",
	}
	switch {
	case slices.Contains(s.kinds(watchers), "on"), slices.Contains(s.kinds(modules), "Y"):
		f.Value, f.Verdict = "DAMON is on", Note
	case !s.exists("sys/kernel/mm"):
		return f.unknown(untold)
	}
	return f
}

func randomised(s *survey) Fact {
	f := Fact{
		Name: "address layout", Value: "drawn anew for every process", Verdict: OK,
		Why:    "where code and data land changes speed by percents; drawn anew in every trial it averages out",
		Remedy: "sudo sysctl kernel.randomize_va_space=2",
	}
	switch s.text("proc/sys/kernel/randomize_va_space") {
	case "2":
	case "1":
		f.Verdict, f.Value = Note, "drawn anew but for the heap"
	case "0":
		f.Verdict, f.Value = Disturbs, "the same for every process"
	default:
		return f.unknown(untold)
	}
	return f
}
