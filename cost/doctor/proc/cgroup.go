package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quota is how much CPU a cgroup may use, and how often it was held back.
type Quota struct {
	CPUs      float64 // of CPU time a second; 0 if there is no bound
	Periods   int64   // in which it ran
	Throttled int64   // of these, in which it was held back
	Waited    time.Duration
}

// readCgroup reads the bounds on a process from its cgroup and those around it:
// the tightest counts. Both versions of cgroups are read, since a machine may
// have the CPU controller in either.
func (r root) readCgroup(f *Facts, dir string) error {
	return eachLine(filepath.Join(dir, "cgroup"), func(line string) {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			return
		}
		controllers, path := parts[1], parts[2]
		switch {
		case controllers == "":
			f.bound(filepath.Join(r.cgroup, "unified"), path, version2)
			f.bound(r.cgroup, path, version2)
		case has(controllers, "cpu"):
			f.bound(filepath.Join(r.cgroup, controllers), path, version1CPU)
			f.bound(filepath.Join(r.cgroup, "cpu"), path, version1CPU)
		case has(controllers, "memory"):
			f.bound(filepath.Join(r.cgroup, "memory"), path, version1Memory)
		}
	})
}

func has(list, name string) bool { return slices.Contains(strings.Split(list, ","), name) }

// limits are the bounds that one cgroup sets; zeros where it sets none.
type limits struct {
	quota  Quota
	memory int64
}

// bound takes the tightest bounds of a cgroup and its ancestors.
func (f *Facts) bound(mount, path string, read func(dir string) limits) {
	for at := filepath.Clean("/" + path); ; at = filepath.Dir(at) {
		l := read(filepath.Join(mount, at))
		if l.quota.CPUs > 0 && (f.Quota.CPUs == 0 || l.quota.CPUs < f.Quota.CPUs) {
			f.Quota = l.quota
		}
		if l.memory > 0 && (f.Limit == 0 || l.memory < f.Limit) {
			f.Limit = l.memory
		}
		if at == "/" {
			return
		}
	}
}

func version2(dir string) limits {
	var l limits
	quota, period, _ := strings.Cut(word(dir, "cpu.max"), " ")
	if q, p := number(quota), number(period); q > 0 && p > 0 {
		l.quota.CPUs = q / p
		l.quota.throttled(dir, "throttled_usec", time.Microsecond)
	}
	l.memory = int64(number(word(dir, "memory.max")))
	return l
}

func version1CPU(dir string) limits {
	var l limits
	if q, p := number(word(dir, "cpu.cfs_quota_us")), number(word(dir, "cpu.cfs_period_us")); q > 0 && p > 0 {
		l.quota.CPUs = q / p
		l.quota.throttled(dir, "throttled_time", time.Nanosecond)
	}
	return l
}

// unbounded is near what version 1 has for "no limit": the largest number of
// whole pages.
const unbounded = 1 << 62

func version1Memory(dir string) limits {
	n := number(word(dir, "memory.limit_in_bytes"))
	if n >= unbounded {
		return limits{}
	}
	return limits{memory: int64(n)}
}

// throttled reads cpu.stat, whose time goes by another name and unit in each
// version.
func (q *Quota) throttled(dir, name string, unit time.Duration) {
	_ = eachLine(filepath.Join(dir, "cpu.stat"), func(line string) { // zeros stand where there is none
		key, value, _ := strings.Cut(line, " ")
		n := int64(number(value))
		switch key {
		case "nr_periods":
			q.Periods = n
		case "nr_throttled":
			q.Throttled = n
		case name:
			q.Waited = time.Duration(n) * unit
		}
	})
}

// word reads a file of one line; "" if there is none.
func word(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// number reads a number; 0 for "max", -1 for "-1" and 0 for what is none.
func number(text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0
	}
	return n
}
