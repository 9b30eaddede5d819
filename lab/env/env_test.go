package env_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tarehq/tare/lab/env"
)

var update = flag.Bool("update", false, "write the .want files anew")

// archived reads files by name from one file, where each begins after a line
// "-- name --".
func archived(t testing.TB, name string) map[string]string {
	t.Helper()
	archive, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for i, part := range strings.Split(string(archive), "\n-- ") {
		if path, content, ok := strings.Cut(part, " --\n"); ok && i > 0 {
			files[path] = content + "\n"
		}
	}
	return files
}

// canned makes a machine of files. What is below after/ takes the place of the
// file of that name while the machine pauses.
func canned(files map[string]string) env.Machine {
	root := fstest.MapFS{}
	for name, content := range files {
		if !strings.HasPrefix(name, "after/") {
			root[name] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	return env.Machine{
		Root: root, System: "linux", PID: tare, CPUs: 2, MaxProcs: 2, Go: "go1.26.0 amd64",
		Pause: func(_ context.Context, d time.Duration) time.Duration {
			for name, content := range files {
				if name, ok := strings.CutPrefix(name, "after/"); ok {
					root[name] = &fstest.MapFile{Data: []byte(content)}
				}
			}
			return d
		},
		Nap: func(d time.Duration) time.Duration { return d + 60*time.Microsecond },
	}
}

// tare is the process number of tare on the canned machines.
const tare = 900

var machines = []string{"metal", "laptop", "container-v1", "container-v2", "vm"}

func TestMachines(t *testing.T) {
	for _, name := range machines {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			for _, f := range canned(archived(t, name)).Read(t.Context()) {
				fmt.Fprintf(&got, "%-9s %s: %s\n", f.Verdict, f.Name, f.Value)
			}
			golden := filepath.Join("testdata", name+".want")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("%s:\ngot\n%s\nwant\n%s", name, got.String(), want)
			}
		})
	}
}

// TestRules changes one machine by a few files and looks at one fact.
func TestRules(t *testing.T) {
	const (
		cgroup    = "proc/self/cgroup"
		mountinfo = "proc/self/mountinfo"
		v2        = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		cpuinfo   = "processor : 0\nmodel name : X\nflags : fpu hypervisor\n"
	)
	type files map[string]string
	for _, test := range []struct {
		name    string
		change  files // of the machine metal; "" = there is no such file
		fact    string
		verdict env.Verdict
		value   string // contained
	}{
		{"one CPU", files{"sys/devices/system/cpu/online": "0\n"}, "cpu", env.Disturbs, "1 CPU"},
		{"CPUs in a list", files{"sys/devices/system/cpu/online": "0-1,4\n"}, "cpu", env.Note, "3 CPUs"},
		{"ARM", files{"proc/cpuinfo": "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd40\n"}, "cpu", env.OK, "implementer 0x41, part 0xd40"},
		{"governor hidden", files{
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "", "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "",
		}, "governor", env.Unknown, "host decides"},
		{"boost", files{"sys/devices/system/cpu/cpufreq/boost": "1\n"}, "turbo", env.Disturbs, "on"},
		{"hot once", files{"sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "3\n"}, "overheating", env.Note, "3 throttling events"},
		{"KVM", files{"proc/cpuinfo": cpuinfo, "sys/class/dmi/id/sys_vendor": "", "sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock tsc\n"}, "virtual machine", env.Note, "KVM"},
		{"EC2", files{"proc/cpuinfo": cpuinfo, "sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, "virtual machine", env.Note, "Amazon EC2"},
		{"EC2 on ARM metal", files{"proc/cpuinfo": "processor : 0\n", "sys/class/dmi/id/sys_vendor": "Amazon EC2\n", "sys/class/dmi/id/product_name": "m7g.metal\n"}, "virtual machine", env.OK, "no"},
		{"hypervisor of no name", files{"proc/cpuinfo": cpuinfo}, "virtual machine", env.Note, "unknown kind"},
		{"WSL", files{"proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n"}, "virtual machine", env.Note, "WSL"},
		{"Kubernetes", files{cgroup: "0::/kubepods/burstable/pod1/2\n"}, "container", env.Note, "kubepods"},
		{"steal long ago", files{"proc/stat": "cpu 10 0 10 1000 0 0 0 90\n", "after/proc/stat": "cpu 10 0 10 1100 0 0 0 90\n"}, "steal", env.Note, "0.0 % now"},
		{"number taken over", files{
			"proc/77/stat": "77 (old) S 1 77 77 0 -1 0 0 0 0 0 500 0 0 0 20 0 1 0 10 0 0 0\n", "after/proc/77/stat": "77 (new) S 1 77 77 0 -1 0 0 0 0 0 30 0 0 0 20 0 1 0 99 0 0 0\n",
		}, "busy processes", env.Disturbs, "new (77) 30 %"},
		{"hidepid", files{"proc/1/stat": ""}, "busy processes", env.Unknown, "other users"},
		{"quota of a parent", files{
			cgroup: "0::/a.slice/b\n", mountinfo: v2, "sys/fs/cgroup/a.slice/cpu.max": "200000 100000\n", "sys/fs/cgroup/a.slice/b/cpu.max": "400000 100000\n",
		}, "cpu quota", env.Disturbs, "2.00 of 16 CPUs"},
		{"quota above the CPUs", files{cgroup: "0::/a\n", mountinfo: v2, "sys/fs/cgroup/a/cpu.max": "1600000 100000\n"}, "cpu quota", env.Note, "16.00 of 16"},
		{"group outside of the container", files{cgroup: "0::/../other\n", mountinfo: v2, "sys/fs/cgroup/cpu.max": "50000 100000\n"}, "cpu quota", env.Disturbs, "0.50 of 16"},
		{"path with an empty name", files{cgroup: "0:://a\n", mountinfo: v2, "sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, "cpu quota", env.Disturbs, "0.50 of 16"},
		{"no control groups", files{cgroup: "0::/\n", mountinfo: "22 1 0:21 / /proc rw - proc proc rw\n"}, "cpu quota", env.OK, "none"},
		{"bound to one CPU", files{"proc/self/status": "PPid:\t1\nCpus_allowed_list:\t3\n"}, "cpus allowed", env.Disturbs, "1 of 16: 3"},
		{"fewer files than the parent", files{"proc/self/limits": "Max open files 512 512 files\n"}, "descriptors", env.Disturbs, "soft limit 512, hard limit 512: 416 connections"},
		{"no limit on files", files{"proc/self/limits": "Max open files unlimited unlimited files\n", "proc/800/limits": ""}, "descriptors", env.OK, "hard limit"},
		{"little memory", files{"proc/meminfo": "MemTotal: 64000000 kB\nMemAvailable: 9000000 kB\n"}, "memory", env.Note, "8.6 GiB of 61.0 GiB"},
		{"half a layout", files{"proc/sys/kernel/randomize_va_space": "1\n"}, "address layout", env.Note, "heap"},
		{"ports without reuse", files{"proc/sys/net/ipv4/tcp_tw_reuse": "0\n"}, "local ports", env.Note, "470 new"},
		{"full tracking", files{"proc/sys/net/netfilter/nf_conntrack_count": "900\n", "proc/sys/net/netfilter/nf_conntrack_max": "1000\n"}, "connection tracking", env.Disturbs, "900"},
		{"old clock", files{"sys/devices/system/clocksource/clocksource0/current_clocksource": "acpi_pm\n"}, "clock source", env.Disturbs, "acpi_pm"},
		{"capabilities", files{"proc/self/status": "CapEff:\t000000c000000000\n"}, "bpf", env.OK, "allowed"},
		{"half of the capabilities", files{"proc/self/status": "CapEff:\t0000008000000000\n"}, "bpf", env.Note, "not allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := archived(t, "metal")
			for name, content := range test.change {
				all[name] = content
				if content == "" {
					delete(all, name)
				}
			}
			expect(t, canned(all).Read(t.Context()), test.fact, test.verdict, test.value)
		})
	}
}

func expect(t *testing.T, facts []env.Fact, name string, verdict env.Verdict, value string) {
	t.Helper()
	at := slices.IndexFunc(facts, func(f env.Fact) bool { return f.Name == name })
	if at < 0 {
		t.Fatalf("no fact %q among %v", name, facts)
	}
	if f := facts[at]; f.Verdict != verdict || !strings.Contains(f.Value, value) {
		t.Errorf("%s: got %s, %q; want %s, containing %q", name, f.Verdict, f.Value, verdict, value)
	}
}

func TestTickFromPackedConfiguration(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("CONFIG_HZ_300=y\nCONFIG_HZ=300\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := archived(t, "metal")
	files["proc/config.gz"] = packed.String()
	expect(t, canned(files).Read(t.Context()), "tick", env.OK, "300 Hz")
}

func TestGoSettings(t *testing.T) {
	for _, test := range []struct {
		environ []string
		fact    string
		verdict env.Verdict
		value   string
	}{
		{nil, "go settings", env.OK, "defaults"},
		{[]string{"GOFLAGS=-mod=mod"}, "go settings", env.Note, "GOFLAGS=-mod=mod"},
		{[]string{"GOGC=100", "GOGC=off", "GODEBUG=x=1"}, "go settings", env.Disturbs, "GOGC=off GODEBUG=x=1"},
		{[]string{"GOMAXPROCS=1"}, "gomaxprocs", env.Note, "2 of 2 CPUs, set to 1"},
	} {
		m := canned(archived(t, "metal"))
		m.Environ = test.environ
		expect(t, m.Read(t.Context()), test.fact, test.verdict, test.value)
	}
}

func TestTimer(t *testing.T) {
	for late, want := range map[time.Duration]env.Verdict{
		0: env.OK, 300 * time.Microsecond: env.Note, 4 * time.Millisecond: env.Disturbs,
	} {
		m := canned(archived(t, "metal"))
		m.Nap = func(d time.Duration) time.Duration { return d + late }
		expect(t, m.Read(t.Context()), "timer", want, "a sleep of 50µs")
	}
}

// TestNothingTold has a machine whose /proc and /sys are empty: no fact may
// claim to know what it read nowhere.
func TestNothingTold(t *testing.T) {
	known := []string{"numa", "idle states", "container", "go", "gomaxprocs", "go settings", "timer", "bpf"}
	for _, f := range canned(nil).Read(t.Context()) {
		if f.Verdict != env.Unknown && !slices.Contains(known, f.Name) {
			t.Errorf("%s of an empty machine: got %s, %q; want unknown", f.Name, f.Verdict, f.Value)
		}
		if f.Value == "" || f.Why == "" {
			t.Errorf("%s of an empty machine: value %q, why %q; want both told", f.Name, f.Value, f.Why)
		}
	}
}

func TestOtherSystem(t *testing.T) {
	m := canned(nil)
	m.Root, m.System = nil, "plan9"
	facts := m.Read(t.Context())
	expect(t, facts, "system", env.Unknown, "plan9")
	expect(t, facts, "go", env.OK, "go1.26.0")
}

func TestCutShort(t *testing.T) {
	m := canned(archived(t, "vm"))
	m.Pause = func(context.Context, time.Duration) time.Duration { return time.Millisecond }
	facts := m.Read(t.Context())
	for _, name := range []string{"steal", "cpu in use", "busy processes", "cpu pressure"} {
		expect(t, facts, name, env.Unknown, "cut short")
	}
	expect(t, facts, "virtual machine", env.Note, "QEMU")
}

// A wait that the kernel counted late is no more than all of the time.
func TestPressureCountedLate(t *testing.T) {
	files := archived(t, "vm")
	files["after/proc/pressure/cpu"] = "some avg10=97.90 avg60=50.00 avg300=20.00 total=9999999999\n"
	expect(t, canned(files).Read(t.Context()), "cpu pressure", env.Disturbs, "100.0 % of the time now, 97.9 % in the last 10 s")
}

// Where looking itself takes long, what was used in that time is no share of the pause.
func TestSlowLook(t *testing.T) {
	files := archived(t, "vm")
	files["proc/uptime"], files["after/proc/uptime"] = "1000.00 1500.00\n", "1002.00 1500.00\n"
	expect(t, canned(files).Read(t.Context()), "cpu in use", env.Disturbs, "0.67 of 2 CPUs, tare apart")
}

// TestThis reads the machine at hand, whatever it is, without waiting.
func TestThis(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	names := map[string]bool{}
	for _, f := range env.Read(ctx) {
		if names[f.Name] || f.Verdict.Grave() < 0 || f.Value == "" || f.Why == "" {
			t.Errorf("got %+v; want a name of its own, a verdict, a value and a reason", f)
		}
		names[f.Name] = true
	}
}

// FuzzRead gives one file any content.
func FuzzRead(f *testing.F) {
	for name, content := range archived(f, "vm") {
		f.Add(name, content)
	}
	base := archived(f, "container-v1")
	f.Fuzz(func(t *testing.T, name, content string) {
		if !fs.ValidPath(name) || len(content) > 1<<16 {
			t.Skip("no file")
		}
		files := maps.Clone(base)
		files[name] = content
		for _, fact := range canned(files).Read(t.Context()) {
			if fact.Verdict.Grave() < 0 || fact.Value == "" {
				t.Errorf("%s = %q: got %+v; want a verdict and a value", name, content, fact)
			}
		}
	})
}

func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	other := env.Machine{System: "plan9", Nap: func(d time.Duration) time.Duration { return d }}
	facts := other.Read(t.Context())
	for _, name := range machines {
		facts = append(facts, canned(archived(t, name)).Read(t.Context())...)
	}
	for _, f := range facts {
		if !strings.Contains(string(page), "`"+f.Name+"`") {
			t.Errorf("docs/environment.md says nothing about %q", f.Name)
		}
	}
}

func TestWithheld(t *testing.T) {
	read := func(stat string) env.CPUTime {
		c := env.Machine{Root: fstest.MapFS{"proc/stat": {Data: []byte(stat)}}}.CPUTime()
		c.Capacity = c.Busy + c.Idle + c.Stolen // as if every tick met a CPU as it was
		return c
	}
	begun := read("cpu 100 0 50 1000 0 0 0 10\n")
	for _, tt := range []struct {
		name, stat string
		since      env.CPUTime
		want       float64
		known      bool
	}{
		{"a quarter", "cpu 140 0 70 1500 0 0 0 30\n", begun, 0.25, true}, // 60 ticks busy, 20 taken
		{"nothing", "cpu 140 0 70 1500 0 0 0 10\n", begun, 0, true},
		{"nothing wanted", "cpu 100 0 50 1500 0 0 0 10\n", begun, 0, false},
		{"no host", "cpu 140 0 70 1500 0 0 0 0\n", read("cpu 100 0 50 1000 0 0 0 0\n"), 0, false},
		{"not reported", "", begun, 0, false},
	} {
		if got, known := read(tt.stat).Withheld(tt.since); got != tt.want || known != tt.known {
			t.Errorf("%s: got %v, %v, want %v, %v", tt.name, got, known, tt.want, tt.known)
		}
	}
	if got := (env.Machine{}).CPUTime(); got != (env.CPUTime{}) {
		t.Errorf("a system that does not tell: got %+v", got)
	}
}

// What runs between two ticks is missed by busy time, and seen in what idle time leaves. The
// figures are those of one second of a proxy under a timer's load on two CPUs.
func TestUsed(t *testing.T) {
	begun := env.CPUTime{Busy: 1000 * time.Second, Idle: 2000 * time.Second, Stolen: time.Second, Capacity: 10 * time.Second}
	ended := env.CPUTime{Busy: begun.Busy + 20*time.Millisecond, Idle: begun.Idle + 1670*time.Millisecond, Stolen: begun.Stolen + 10*time.Millisecond, Capacity: begun.Capacity + 2*time.Second}
	if got, want := ended.Used(begun), 320*time.Millisecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	m := env.Machine{Root: fstest.MapFS{"proc/stat": {Data: []byte("cpu 1 0 1 1 0 0 0 0\n")}, "sys/devices/system/cpu/online": {Data: []byte("0-2\n")}}}
	before := time.Now()
	first := m.CPUTime()
	time.Sleep(20 * time.Millisecond)
	if got, most := m.CPUTime().Capacity-first.Capacity, 3*time.Since(before); got > most || got < 60*time.Millisecond {
		t.Errorf("three CPUs could do %v more, want from 60ms to %v", got, most)
	}
}
