package env

import (
	"regexp"
	"strings"
)

func virtual(s *survey) Fact {
	f := Fact{
		Name: "virtual machine", Value: "no", Verdict: OK,
		Why:    "a host shares its CPUs, caches and clock with machines that cannot be seen from here",
		Remedy: "measure on hardware of your own, or on an instance with dedicated CPUs",
	}
	if !s.exists("proc/cpuinfo") {
		return f.unknown(untold)
	}
	if kind := s.hypervisor(); kind != "" {
		f.Verdict, f.Value = Note, kind
	}
	return f
}

// hypervisor names what the machine runs on, "" for bare metal. x86 tells
// by a flag; firmware and clocks tell what kind, and elsewhere whether at all.
func (m Machine) hypervisor() string {
	if strings.Contains(strings.ToLower(m.text("proc/sys/kernel/osrelease")), "microsoft") {
		return "WSL on Hyper-V"
	}
	flags, x86 := m.keyed("proc/cpuinfo")["flags"]
	if x86 && !strings.Contains(" "+flags+" ", " hypervisor ") {
		return ""
	}
	told := strings.Join([]string{
		m.text("sys/class/dmi/id/sys_vendor"), m.text("sys/class/dmi/id/product_name"), m.text("sys/hypervisor/type"),
		m.text("proc/device-tree/hypervisor/compatible"), m.text("sys/devices/system/clocksource/clocksource0/available_clocksource"),
	}, "\n")
	for _, known := range []struct{ says, kind string }{
		{"VMware", "VMware"}, {"VirtualBox", "VirtualBox"}, {"Amazon EC2", "Amazon EC2"},
		{"Google Compute Engine", "Google Compute Engine"}, {"Virtual Machine", "Hyper-V"}, {"hyperv", "Hyper-V"},
		{"QEMU", "QEMU"}, {"KVM", "KVM"}, {"kvm", "KVM"}, {"xen", "Xen"}, {"Parallels", "Parallels"},
	} {
		if strings.Contains(told, known.says) && !strings.Contains(told, ".metal") {
			return known.kind
		}
	}
	if x86 {
		return "yes, of an unknown kind"
	}
	return ""
}

// engines are the names that container engines leave in a control group's path.
var engines = regexp.MustCompile(`docker|containerd|kubepods|libpod|crio|lxc|nspawn`)

func container(s *survey) Fact {
	f := Fact{
		Name: "container", Value: "no", Verdict: OK,
		Why:    "its limits add to the machine's, and processes outside it are not visible",
		Remedy: "measure outside, or give it whole CPUs (--cpuset-cpus) and no quota",
	}
	kind := engines.FindString(s.text("proc/self/cgroup"))
	switch {
	case s.exists(".dockerenv"):
		kind = "docker"
	case s.exists("run/.containerenv"):
		kind = "podman"
	case s.text("run/systemd/container") != "":
		kind = s.text("run/systemd/container")
	}
	if kind != "" {
		f.Verdict, f.Value = Note, kind
	}
	return f
}
