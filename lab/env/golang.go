package env

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// portable are the facts that need no /proc.
func portable() []item {
	return []item{system, toolchain, procs, settings, timer}
}

// system stands for everything that cannot be read elsewhere than on Linux.
func system(s *survey) Fact {
	if s.Root != nil {
		return Fact{}
	}
	return Fact{
		Name: "system", Verdict: Unknown,
		Value:  s.System + ": processors, neighbours, limits, memory, network and kernel cannot be read",
		Why:    "tare reads them from /proc and /sys, which only Linux has; what disturbs measuring here stays unseen",
		Remedy: "measure on Linux, or close other programs and keep the machine on mains power",
	}
}

func toolchain(s *survey) Fact {
	return Fact{
		Name: "go", Value: s.Go, Verdict: OK,
		Why: "compiler and runtime are part of what a service costs; compare absolute figures of one version only",
	}
}

func procs(s *survey) Fact {
	f := Fact{
		Name: "gomaxprocs", Value: fmt.Sprintf("%d of %d CPUs", s.MaxProcs, s.CPUs), Verdict: OK,
		Why: "it bounds the threads that run Go code, and the collector's workers",
	}
	if set := s.variable("GOMAXPROCS"); set != "" {
		f.Verdict = Note
		f.Value += ", set to " + set + " in the environment"
		f.Remedy = "unset GOMAXPROCS"
	}
	return f
}

// settings are environment variables that change what Go programs cost. Arms
// inherit them.
func settings(s *survey) Fact {
	f := Fact{
		Name: "go settings", Value: "defaults", Verdict: OK,
		Why:    "arms inherit these variables: collection, memory and behaviour are no longer those of a default build",
		Remedy: "unset ",
	}
	var names, set []string
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GODEBUG", "GOFLAGS", "GOEXPERIMENT", "GOAMD64", "GOTRACEBACK"} {
		if value := s.variable(name); value != "" {
			names, set = append(names, name), append(set, name+"="+value)
		}
	}
	if set == nil {
		return f
	}
	f.Value, f.Remedy, f.Verdict = strings.Join(set, " "), f.Remedy+strings.Join(names, " "), Note
	if slices.ContainsFunc(names, func(n string) bool { return n == "GOGC" || n == "GOMEMLIMIT" || n == "GODEBUG" }) {
		f.Verdict = Disturbs
	}
	return f
}

// variable returns the value of an environment variable.
func (m Machine) variable(name string) string {
	for _, v := range slices.Backward(m.Environ) { // the last one counts
		if key, value, _ := strings.Cut(v, "="); key == name {
			return value
		}
	}
	return ""
}

// timer measures how late a thread wakes that asked for 50 µs.
func timer(s *survey) Fact {
	const asked, naps = 50 * time.Microsecond, 41
	var took [naps]time.Duration
	for i := range took {
		took[i] = s.Nap(asked)
	}
	slices.Sort(took[:])
	late := took[naps/2] - asked
	f := Fact{
		Name: "timer", Verdict: OK,
		Value: fmt.Sprintf("a sleep of %v takes %v (median), %v at most", asked,
			took[naps/2].Round(time.Microsecond), took[naps-1].Round(time.Microsecond)),
		Why:    "a schedule cannot be kept more exactly than threads wake; the difference is the generator's lag",
		Remedy: "leave CPUs free; on a kernel without high-resolution timers boot with highres=on",
	}
	switch {
	case late > time.Millisecond:
		f.Verdict = Disturbs
	case late > 250*time.Microsecond:
		f.Verdict = Note
	}
	return f
}
