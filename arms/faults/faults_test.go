// Package main_test has `tare doctor` look at the faults. It stands here and not
// beside the command since it takes minutes.
package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// diagnosis is what `tare doctor --json` prints of a service.
type diagnosis struct {
	Findings  []finding `json:"findings"`
	Uncertain []finding `json:"uncertain"`
	Cheap     []finding `json:"cheap"`
	Healthy   []string  `json:"healthy"`
	Blind     []struct {
		Rule   string `json:"rule"`
		Needs  string `json:"needs"`
		Reason string `json:"reason"`
	} `json:"not_looked_at"`
}

type finding struct {
	Rule     string  `json:"rule"`
	Severity string  `json:"severity"`
	Title    string  `json:"title"`
	Price    *amount `json:"price"`
	Evidence []struct {
		What  string  `json:"what"`
		Where string  `json:"where"`
		Value float64 `json:"value"`
	} `json:"evidence"`
	Remedy string `json:"remedy"`
}

type amount struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Share float64 `json:"share"`
}

// Exit statuses of a command that found something, and of one that could not tell.
const (
	found        = 3
	inconclusive = 4
)

// planted is a fault of this program and how to look at it.
type planted struct {
	name    string
	program string   // another than this one
	env     []string // of the one with the fault
	args    []string // for both
	sick    []string // for the one with the fault
	quota   bool     // in a cgroup with half a CPU; the healthy one with four
	twin    bool     // its healthy twin is another's, too, and is looked at there
	want    []string // all in titles and evidence of the rule's findings
}

func allPlanted() []planted {
	var fields []string
	for i := range 80 {
		fields = append(fields, "-H", fmt.Sprintf("X-Field-Number-%d: what field %d has to say", i, i))
	}
	source := []string{"--source", "."}
	return []planted{
		{name: "json", want: []string{"faults/content.go"}},
		{name: "format", want: []string{"faults/content.go"}},
		{name: "contexts", want: []string{"faults/content.go"}},
		{name: "headers", twin: true, sick: fields, want: []string{"header fields"}},
		{name: "introspection", want: []string{"faults/content.go"}},
		{name: "compression", want: []string{"made anew", "level 2 or above"}},
		{name: "compression-again", twin: true, want: []string{"does not become smaller", "faults/content.go"}},
		{name: "owners", want: []string{"faults.(*filter).ServeHTTP spends", "compiling regular expressions", "faults/owners.go"}},
		{name: "owners-middleware", want: []string{"the middleware faults.(*guard).ServeHTTP", "json.Unmarshal, called by"}},
		{name: "pool", want: []string{"takeAndKeep"}},
		{name: "pool-new", twin: true, want: []string{"poolEach"}},
		{name: "buffers", want: []string{"faults.render"}},
		{name: "goroutines", want: []string{"goroutines started at faults/waiting.go:", "do not end"}},
		{name: "gc", want: []string{"predicted with GOGC="}},
		{name: "mutex", want: []string{"faults/waiting.go"}},
		{name: "logging", want: []string{"slow log"}},
		{name: "logging-lock", twin: true, want: []string{"for the logger's lock", "faults/waiting.go"}},
		{name: "sleep", twin: true, want: []string{"faults/waiting.go"}},
		{name: "queue", want: []string{"for a place in a pool or at a semaphore", "faults/waiting.go"}},
		{name: "call", twin: true, want: []string{"for other services", "faults/"}},
		{name: "fsync", want: []string{"for fsync", "faults/waiting.go"}},
		{name: "client", want: []string{"connections opened, by", "in time wait, to 127.0.0.1:"}},
		{name: "client-new", twin: true, want: []string{"connections opened, by", "Transports are made anew"}},
		{name: "deadline", twin: true, want: []string{"no time limit", "faults/waiting.go"}},
		{name: "bodies", args: []string{"-b", strings.Repeat("text ", 100)}, want: []string{"without a bound", "faults/waiting.go"}},
		{name: "labels", want: []string{"new series of metrics", "faults/memory.go"}},
		{name: "timeouts", sick: []string{"--for", "10s"}, want: []string{"without bound"}},
		{name: "timeouts-short", twin: true, want: []string{"gives up on a header after"}},
		{name: "timeouts-late", twin: true, sick: []string{"--for", "12s"}, want: []string{"waits 11"}},
		{name: "procs", env: []string{"GOMAXPROCS=8"}, quota: true, want: []string{"from the environment"}},
		{name: "throttled", twin: true, quota: true, want: []string{"holds the process back", "waited for a CPU"}},
		{name: "defers", args: source, want: []string{"faults/defers.go"}},
		{name: "escapes", args: source, want: []string{"moved to heap: c"}},
	}
}

// programs is the folder of what is built, "" before a test has asked for it.
var programs string

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(programs)
	os.Exit(status)
}

// buildAll builds tare and the arms, unless an earlier test has, and returns the folder they
// are in.
func buildAll(t *testing.T) string {
	t.Helper()
	if programs != "" {
		return programs
	}
	bin, err := os.MkdirTemp("", "faults")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-C", "../..", "build", "-o", bin + "/", "./cmd/tare"}, {"build", "-o", bin + "/", ".", "../nethttp"}} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			os.RemoveAll(bin)
			t.Fatalf("building: %v\n%s", err, out)
		}
	}
	programs = bin
	return bin
}

// TestDoctor has the doctor look at every fault, and at a twin without it: it
// must find the one, and nothing at all in the other. Looks are taken side by side, as
// they wait more than they work. One that came out wrong is repeated alone, and longer.
func TestDoctor(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: -short leaves it out")
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("some faults show in /proc alone")
	}
	bin := buildAll(t)
	covered := map[string]bool{}
	for _, p := range allPlanted() {
		rule, _, _ := strings.Cut(p.name, "-")
		covered[rule] = true
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			eventually(t, func(longer []string) error { return looksAt(t, bin, p, rule, longer) })
		})
		if p.twin {
			continue
		}
		t.Run(p.name+", healthy", func(t *testing.T) {
			t.Parallel()
			eventually(t, func(longer []string) error { return looksAt(t, bin, p, "", longer) })
		})
	}
	for _, rule := range rules(t, bin) {
		if !covered[rule] {
			t.Errorf("rule %q: no fault is planted for it", rule)
		}
	}
}

// alone is held for writing by a look that is repeated, and for reading by a first one.
var alone sync.RWMutex

// eventually tries three times, but for the first alone.
func eventually(t *testing.T, try func(longer []string) error) {
	t.Helper()
	alone.RLock()
	unlock := alone.RUnlock
	defer func() { unlock() }()
	for _, d := range []string{"2s", "4s", "10s"} {
		err := try([]string{"--for", d})
		if err == nil {
			return
		}
		t.Logf("with --for %s: %v", d, err)
		unlock()
		alone.Lock()
		unlock = alone.Unlock
	}
	t.Error("came out wrong three times")
}

// looksAt starts an arm, has it looked at, and says what is wrong with the
// diagnosis: it must have a finding of that rule, or none at all if there is no
// rule.
func looksAt(t *testing.T, bin string, p planted, rule string, longer []string) error {
	args := append(longer, p.args...)
	if rule != "" {
		args = append(args, p.sick...)
	}
	addr, _, stop := plant(t, bin, p, rule == "")
	defer stop()
	d, err := diagnose(bin, append(args, "--load", "http://"+addr+"/", "-c", "8", addr))
	if err != nil {
		return err
	}
	if rule == "" {
		if len(d.Findings) > 0 {
			return fmt.Errorf("found %s where nothing is wrong", findingsText(d.Findings))
		}
		if name, _, _ := strings.Cut(p.name, "-"); slices.Contains(d.blind(), name) {
			return fmt.Errorf("%s was not looked at: %v", name, d.Blind)
		}
		return nil
	}
	of := slices.DeleteFunc(slices.Clone(d.Findings), func(f finding) bool { return f.Rule != rule })
	text := findingsText(of)
	lacks := slices.DeleteFunc(slices.Clone(p.want), func(want string) bool { return strings.Contains(text, want) })
	if len(of) > 0 && len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("want findings of %s with %q, got %s; uncertain: %s; cheap: %s; not looked at: %v", rule, lacks, findingsText(d.Findings), findingsText(d.Uncertain), findingsText(d.Cheap), d.Blind)
}

// blind are the rules that could not tell.
func (d *diagnosis) blind() []string {
	var names []string
	for _, b := range d.Blind {
		names = append(names, b.Rule)
	}
	return names
}

// rules are all rules that there are: every one is somewhere in a diagnosis.
func rules(t *testing.T, bin string) []string {
	t.Helper()
	d, err := diagnose(bin, []string{strconv.Itoa(os.Getpid()), "--for", "1s"})
	if err != nil {
		t.Fatal(err)
	}
	all := append(d.blind(), d.Healthy...)
	for _, f := range slices.Concat(d.Findings, d.Uncertain, d.Cheap) {
		all = append(all, f.Rule)
	}
	return all
}

func findingsText(findings []finding) string {
	var texts []string
	for _, f := range findings {
		text := f.Rule + ": " + f.Title
		if f.Price != nil {
			text += fmt.Sprintf(" (%.3g [%.3g, %.3g], %.3g of it all)", f.Price.Value, f.Price.Low, f.Price.High, f.Price.Share)
		}
		for _, r := range f.Evidence {
			text += fmt.Sprintf("; %s %s %.3g", r.What, r.Where, r.Value)
		}
		texts = append(texts, text)
	}
	return strconv.Quote(strings.Join(texts, " | "))
}

// plant starts one twin and returns its address once it answers.
func plant(t *testing.T, bin string, p planted, healthy bool) (addr string, pid int, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	cmd := exec.Command(filepath.Join(bin, "faults"), "-fault", p.name, "-healthy="+strconv.FormatBool(healthy))
	if p.program != "" {
		cmd = exec.Command(filepath.Join(bin, p.program))
	}
	cmd.Env = append(os.Environ(), "TARE_ADDR="+addr)
	if !healthy {
		cmd.Env = append(cmd.Env, p.env...)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	t.Cleanup(stop)
	if p.quota {
		cpus := 0.5
		if healthy {
			cpus = 4
		}
		throttle(t, cmd.Process.Pid, cpus)
	}
	for range 1000 {
		res, err := http.Get("http://" + addr + "/")
		if err == nil {
			res.Body.Close()
			return addr, cmd.Process.Pid, stop
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the arm does not answer")
	return "", 0, nil
}

// TestDoctorProcess names a process in place of a URL: its profiles are found by
// its ports, and one that has none is sampled from outside where that is allowed.
func TestDoctorProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("processes are found in /proc")
	}
	bin := buildAll(t)
	for _, tc := range []struct {
		p    planted
		want string // the first finding's rule, or why there may be none
	}{
		{planted{name: "json"}, "json"},
		{planted{program: "nethttp"}, "sampling it from outside"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			t.Parallel()
			eventually(t, func(longer []string) error {
				addr, pid, stop := plant(t, bin, tc.p, false)
				defer stop()
				d, err := diagnose(bin, append(longer, "--load", "http://"+addr+"/", "-c", "8", strconv.Itoa(pid)))
				if err != nil {
					return err
				}
				for _, b := range d.Blind {
					if b.Rule == "json" && !strings.Contains(b.Reason, tc.want) {
						return fmt.Errorf("json was not looked at: %s", b.Reason)
					}
				}
				if tc.want == "json" && (len(d.Findings) == 0 || d.Findings[0].Rule != "json") {
					return fmt.Errorf("got %s, want json first", findingsText(d.Findings))
				}
				return nil
			})
		})
	}
}

// diagnose runs the command.
func diagnose(bin string, args []string) (*diagnosis, error) {
	cmd := exec.Command(filepath.Join(bin, "tare"), append([]string{"doctor", "--json"}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != found && exit.ExitCode() != inconclusive) {
		if exit != nil {
			return nil, fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, err
	}
	var told []*diagnosis
	if err := json.Unmarshal(out, &told); err != nil || len(told) != 1 {
		return nil, fmt.Errorf("reading %.200q: %d diagnoses, %w", out, len(told), err)
	}
	d := told[0]
	if sick := exit != nil && exit.ExitCode() == found; sick != (len(d.Findings) > 0) {
		return nil, fmt.Errorf("found something: %t, with %d findings", sick, len(d.Findings))
	}
	return d, nil
}

// throttle moves a process into a cgroup with so many CPUs, or skips the test.
func throttle(t *testing.T, pid int, cpus float64) {
	t.Helper()
	quota := strconv.Itoa(int(20000 * cpus))
	name := fmt.Sprintf("tare-test-%d", pid)
	for _, c := range []struct{ dir, files, values string }{
		{"/sys/fs/cgroup/cpu/" + name, "cpu.cfs_period_us,cpu.cfs_quota_us", "20000," + quota},
		{"/sys/fs/cgroup/" + name, "cpu.max", quota + " 20000"},
	} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(c.dir), "cgroup.procs")); err != nil {
			continue
		}
		if err := os.Mkdir(c.dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() {
			for range 100 { // until the process that was in it has ended
				if os.Remove(c.dir) == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		values := strings.Split(c.values, ",")
		ok := true
		for i, file := range strings.Split(c.files, ",") {
			ok = ok && os.WriteFile(filepath.Join(c.dir, file), []byte(values[i]), 0) == nil
		}
		if ok && os.WriteFile(filepath.Join(c.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0) == nil {
			return
		}
	}
	t.Skip("no cgroup with a CPU quota can be made here: needs root and the cpu controller")
}
