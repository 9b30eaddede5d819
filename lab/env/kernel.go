package env

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// kernel are the facts of the kernel, and of what it lets be observed.
func kernel() []item { return []item{version, mitigations, clock, ticks, perf, bpf} }

func version(s *survey) Fact {
	f := Fact{
		Name: "kernel", Value: s.text("proc/sys/kernel/osrelease"), Verdict: OK,
		Why: "most of a small request's time is spent in the kernel; compare absolute figures of one version only",
	}
	if f.Value == "" {
		return f.unknown(untold)
	}
	for word := range strings.FieldsSeq(s.text("proc/sys/kernel/version")) {
		if strings.HasPrefix(word, "PREEMPT") {
			f.Value += ", " + word
		}
	}
	return f
}

func mitigations(s *survey) Fact {
	f := Fact{
		Name: "mitigations", Verdict: Note,
		Why: "they slow down every system call and task switch; compare absolute figures only where they are alike",
	}
	on, open, spared := 0, 0, 0
	for _, name := range s.paths(cpus + "vulnerabilities/*") {
		switch text := s.text(name); {
		case strings.HasPrefix(text, "Not affected"):
			spared++
		case strings.HasPrefix(text, "Mitigation"):
			on++
		case strings.HasPrefix(text, "Vulnerable"):
			open++
		}
	}
	f.Value = fmt.Sprintf("%d on, %d vulnerable, %d not affected", on, open, spared)
	if on+open+spared == 0 {
		return f.unknown(untold)
	}
	for word := range strings.FieldsSeq(s.text("proc/cmdline")) {
		if strings.HasPrefix(word, "mitigations=") {
			f.Value += "; booted with " + word
		}
	}
	return f
}

func clock(s *survey) Fact {
	f := Fact{
		Name: "clock source", Value: s.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Why:    "these are read without a system call; any other makes each look at the clock cost a microsecond or so",
		Remedy: "boot with tsc=reliable if the machine's counters can be trusted (dmesg | grep -i tsc says why they were not)",
	}
	switch f.Value {
	case "tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "tod", "riscv_clocksource":
		f.Verdict = OK
	case "":
		return f.unknown(untold)
	default:
		f.Verdict = Disturbs
	}
	return f
}

// ticks is the frequency of the scheduler's tick, which is in the kernel's
// configuration only.
func ticks(s *survey) Fact {
	f := Fact{
		Name: "tick", Verdict: OK,
		Why: "a busy CPU changes tasks by force at ticks only: at 100 Hz a request can wait 10 ms for its turn",
	}
	hz, err := strconv.Atoi(s.configured("CONFIG_HZ"))
	f.Value = fmt.Sprintf("%d Hz", hz)
	switch {
	case err != nil:
		return f.unknown(untold)
	case hz < 250:
		f.Verdict = Note
	}
	return f
}

// configured returns an option of the kernel's configuration, "" if unknown.
func (m Machine) configured(option string) string {
	var config io.Reader = bytes.NewReader(m.content(path.Join("boot", path.Base("config-"+m.text("proc/sys/kernel/osrelease")))))
	if packed, err := gzip.NewReader(bytes.NewReader(m.content("proc/config.gz"))); err == nil {
		config = io.LimitReader(packed, limit)
	}
	for lines := bufio.NewScanner(config); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), option+"="); ok {
			return value
		}
	}
	return ""
}

// Capabilities that observing asks for, as bits of CapEff.
const (
	capSysAdmin = 1 << 21
	capPerfmon  = 1 << 38
	capBPF      = 1 << 39
)

// may reports whether this process has one of the capabilities.
func (m Machine) may(capabilities uint64) bool {
	has, err := strconv.ParseUint(m.keyed("proc/self/status")["CapEff"], 16, 64)
	return err == nil && has&capabilities != 0
}

func perf(s *survey) Fact {
	f := Fact{
		Name: "perf events", Verdict: Note,
		Why:    "sampling a program from outside needs them; trials do not",
		Remedy: "sudo sysctl kernel.perf_event_paranoid=1",
	}
	level, ok := s.number("proc/sys/kernel/perf_event_paranoid")
	switch {
	case !ok:
		return f.unknown(untold)
	case s.may(capSysAdmin | capPerfmon), level < 1:
		f.Verdict, f.Value = OK, "allowed"
	case level == 1:
		f.Verdict, f.Value = OK, "allowed for own processes"
	case level == 2:
		f.Value = "allowed for own processes, without the kernel's part"
	default:
		f.Value = "not allowed"
	}
	f.Value += fmt.Sprintf(" (perf_event_paranoid %d)", level)
	return f
}

func bpf(s *survey) Fact {
	f := Fact{
		Name: "bpf", Value: "allowed", Verdict: OK,
		Why:    "attributing cost to code from outside needs it; trials do not",
		Remedy: "run as root, or with CAP_BPF and CAP_PERFMON",
	}
	switch {
	case !s.exists("sys/kernel/btf/vmlinux"):
		f.Verdict, f.Value = Note, "the kernel does not describe its types (BTF)"
		f.Remedy = "a kernel with CONFIG_DEBUG_INFO_BTF=y"
	case !s.may(capSysAdmin) && !(s.may(capBPF) && s.may(capPerfmon)):
		f.Verdict, f.Value = Note, "not allowed for this user"
	}
	if n, ok := s.number("proc/sys/kernel/unprivileged_bpf_disabled"); ok {
		f.Value += fmt.Sprintf(" (unprivileged_bpf_disabled %d)", n)
	}
	return f
}
