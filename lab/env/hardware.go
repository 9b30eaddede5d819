package env

import (
	"fmt"
	"slices"
	"strings"
)

const cpus = "sys/devices/system/cpu/"

// hardware are the facts of the processors and of what they pretend to be.
func hardware() []item {
	return []item{processor, siblings, nodes, cores, governor, turbo, overheating, idling, mains, virtual, container}
}

func processor(s *survey) Fact {
	info := s.keyed("proc/cpuinfo")
	model := info["model name"]
	for _, key := range []string{"Model", "cpu model", "cpu"} { // of other architectures
		if model == "" {
			model = info[key]
		}
	}
	switch by := info["CPU implementer"]; { // 64-bit ARM tells numbers
	case model == "" && by != "":
		model = "implementer " + by + ", part " + info["CPU part"]
	case model == "":
		model = "model not reported"
	}
	online := s.online()
	f := Fact{
		Name: "cpu", Value: fmt.Sprintf("%s, %d CPUs", model, online), Verdict: OK,
		Why:    "generator and service need CPUs of their own: shared ones make each wait for the other",
		Remedy: "measure on a machine with four CPUs or more",
	}
	switch {
	case online == 0:
		return f.unknown(model)
	case online == 1:
		f.Verdict, f.Value = Disturbs, model+", 1 CPU"
	case online < 4:
		f.Verdict = Note
	}
	return f
}

// online is the number of CPUs that run, 0 if unknown.
func (m Machine) online() int { return counted(m.text(cpus + "online")) }

func siblings(s *survey) Fact {
	f := Fact{
		Name: "smt", Value: "off", Verdict: OK,
		Why:    "two hardware threads of one core slow each other down, by an amount that depends on what both run",
		Remedy: "echo off | sudo tee /sys/devices/system/cpu/smt/control",
	}
	switch s.text(cpus + "smt/active") {
	case "0":
	case "1":
		f.Verdict, f.Value = Note, "on"
		for _, list := range s.kinds(cpus + "cpu[0-9]*/topology/thread_siblings_list") {
			if counted(list) > 1 {
				f.Value = "on: CPUs " + list + " are one core, and so on"
				break
			}
		}
	default:
		return f.unknown(untold)
	}
	return f
}

func nodes(s *survey) Fact {
	f := Fact{
		Name: "numa", Value: "1 node", Verdict: OK,
		Why:    "memory of another node is slower; where a process lands differs from trial to trial",
		Remedy: "numactl --cpunodebind=0 --membind=0 tare run …",
	}
	if n := counted(s.text("sys/devices/system/node/online")); n > 1 {
		f.Verdict, f.Value = Note, fmt.Sprintf("%d nodes", n)
	}
	return f
}

// cores tells performance from efficiency cores: favoured cores of one kind
// differ by up to a tenth in their highest frequency, kinds by a fifth or more.
func cores(s *survey) Fact {
	var speeds []float64
	for _, pattern := range []string{"cpu[0-9]*/cpu_capacity", "cpu[0-9]*/cpufreq/cpuinfo_max_freq"} {
		for _, text := range s.kinds(cpus + pattern) {
			speeds = append(speeds, float64(first(text)))
		}
		if speeds != nil {
			break
		}
	}
	if len(speeds) < 2 {
		return Fact{}
	}
	slowest := slices.Min(speeds) / slices.Max(speeds)
	if !(slowest < 0.85) { // nor where nothing was told
		return Fact{}
	}
	return Fact{
		Name: "core kinds", Verdict: Disturbs,
		Value:  fmt.Sprintf("the slowest cores have %.0f %% of the fastest's speed", 100*slowest),
		Why:    "a trial that lands on slow cores measures them, not the arm",
		Remedy: "taskset -c with CPUs of one kind (lscpu -e shows them) before tare run …",
	}
}

func governor(s *survey) Fact {
	f := Fact{
		Name: "governor", Verdict: OK,
		Why:    "a CPU that clocks down when idle is slower at low rates than at high ones",
		Remedy: "sudo cpupower frequency-set -g performance",
	}
	kinds := s.kinds(cpus + "cpu[0-9]*/cpufreq/scaling_governor")
	if kinds == nil {
		return f.unknown("not reported: the virtual machine's host decides")
	}
	f.Value = strings.Join(kinds, ", ")
	if driver := s.kinds(cpus + "cpu[0-9]*/cpufreq/scaling_driver"); driver != nil {
		f.Value += " (" + strings.Join(driver, ", ") + ")"
	}
	if preference := s.kinds(cpus + "cpu[0-9]*/cpufreq/energy_performance_preference"); preference != nil {
		f.Value += ", preference " + strings.Join(preference, ", ")
	}
	if !slices.Equal(kinds, []string{"performance"}) {
		f.Verdict = Disturbs
	}
	return f
}

func turbo(s *survey) Fact {
	f := Fact{
		Name: "turbo", Value: "off", Verdict: OK,
		Why: "the clock then depends on heat and on how many cores are busy, and drifts within a run",
	}
	noTurbo, intel := s.number(cpus + "intel_pstate/no_turbo")
	boost, other := s.number(cpus + "cpufreq/boost")
	switch {
	case intel:
		f.Remedy = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
	case other:
		f.Remedy = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
	default:
		return f.unknown(untold)
	}
	if intel && noTurbo == 0 || !intel && boost == 1 {
		f.Verdict, f.Value = Disturbs, "on"
	}
	return f
}

func overheating(s *survey) Fact {
	if s.paths(cpus+"cpu[0-9]*/thermal_throttle/core_throttle_count") == nil {
		return Fact{}
	}
	f := Fact{
		Name: "overheating", Value: "never since boot", Verdict: OK,
		Why:    "an overheated CPU clocks down until it has cooled",
		Remedy: "cool the machine, clear its vents, turn turbo off",
	}
	switch more := s.after.overheated - s.before.overheated; {
	case more > 0:
		f.Verdict, f.Value = Disturbs, fmt.Sprintf("%d throttling events in the last second", more)
	case s.after.overheated > 0:
		f.Verdict, f.Value = Note, fmt.Sprintf("%d throttling events since boot, none now", s.after.overheated)
	}
	return f
}

// idling names the deepest idle state that is in use, by how long a CPU takes to
// leave it.
func idling(s *survey) Fact {
	f := Fact{
		Name: "idle states", Value: "none", Verdict: OK,
		Why:    "waking a sleeping CPU is part of every response time at low rates",
		Remedy: "sudo cpupower idle-set -D 10",
	}
	var deepest int64
	for _, dir := range s.paths(cpus + "cpu0/cpuidle/state[0-9]*") {
		latency, ok := s.number(dir + "/latency")
		if off, _ := s.number(dir + "/disable"); ok && off == 0 && latency >= deepest {
			deepest = latency
			f.Value = fmt.Sprintf("%s takes %d µs to leave", s.text(dir+"/name"), latency)
		}
	}
	if deepest > 10 {
		f.Verdict = Note
	}
	return f
}

func mains(s *survey) Fact {
	for _, kind := range s.paths("sys/class/power_supply/*/type") {
		if s.text(kind) != "Mains" {
			continue
		}
		f := Fact{
			Name: "power", Value: "mains", Verdict: OK,
			Why: "on battery, firmware lowers the clock", Remedy: "plug it in",
		}
		if online, ok := s.number(strings.TrimSuffix(kind, "type") + "online"); ok && online == 0 {
			f.Verdict, f.Value = Disturbs, "battery"
		}
		return f
	}
	return Fact{}
}
