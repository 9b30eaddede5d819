package env

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// group finds the control group that a controller holds this process in. It
// returns the group's folder, then those above it, up to what this system
// shows: in a container that is the container's own group. Version 1 mounts a
// hierarchy a controller, version 2 one for all; a system may mix both.
func (m Machine) group(controller string) (dirs []string, version int) {
	paths := map[int]string{}
	for line := range strings.Lines(m.text("proc/self/cgroup")) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) < 3:
		case slices.Contains(strings.Split(part[1], ","), controller):
			paths[1] = part[2]
		case part[1] == "":
			paths[2] = part[2]
		}
	}
	for version = 1; version <= 2; version++ {
		own, in := paths[version]
		root, at, mounted := m.mount(controller, version)
		if !in || !mounted {
			continue
		}
		// A path that is not below the mount's root was given by somebody outside
		// of this container; the mount then is the container's own group.
		below, ok := strings.CutPrefix(own, strings.TrimSuffix(root, "/")+"/")
		if !ok || strings.HasPrefix(below, "..") {
			below = ""
		}
		for group := path.Clean("/" + below); group != "/"; group = path.Dir(group) {
			dirs = append(dirs, path.Join(at, group))
		}
		return append(dirs, at), version
	}
	return nil, 0
}

// mount finds where a hierarchy is mounted, and which of its groups there.
func (m Machine) mount(controller string, version int) (root, at string, ok bool) {
	for line := range strings.Lines(m.text("proc/self/mountinfo")) {
		front, back, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(front), strings.Fields(back)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		switch {
		case version == 2 && what[0] == "cgroup2":
		case version == 1 && what[0] == "cgroup" && slices.Contains(strings.Split(what[2], ","), controller):
		default:
			continue
		}
		return where[3], strings.TrimPrefix(where[4], "/"), true
	}
	return "", "", false
}

// quota is the tightest bound on CPU time.
type quota struct {
	cpus      float64 // +Inf = none
	period    time.Duration
	throttled int64 // periods in which the group stood still
	periods   int64
	stood     time.Duration
}

func (m Machine) quota() quota {
	tightest := quota{cpus: math.Inf(1)}
	dirs, version := m.group("cpu")
	for _, dir := range dirs {
		var allowed, period string
		if version == 2 {
			allowed, period, _ = strings.Cut(m.text(dir+"/cpu.max"), " ")
		} else {
			allowed, period = m.text(dir+"/cpu.cfs_quota_us"), m.text(dir+"/cpu.cfs_period_us")
		}
		us, err := strconv.ParseInt(allowed, 10, 40)
		every, err2 := strconv.ParseInt(period, 10, 40)
		if err != nil || err2 != nil || us <= 0 || every <= 0 || float64(us)/float64(every) >= tightest.cpus {
			continue // "max" and -1 are no bound
		}
		stat := m.keyed(dir + "/cpu.stat")
		tightest = quota{
			cpus: float64(us) / float64(every), period: time.Duration(every) * time.Microsecond,
			throttled: first(stat["nr_throttled"]), periods: first(stat["nr_periods"]),
			stood: time.Duration(first(stat["throttled_usec"]))*time.Microsecond + time.Duration(first(stat["throttled_time"])),
		}
	}
	return tightest
}

// memoryLimit is the tightest bound on memory in bytes, and what is used of it.
// Version 1 writes an absent bound as a number near 2⁶³.
func (m Machine) memoryLimit() (bytes, used int64, ok bool) {
	dirs, version := m.group("memory")
	bound, usage := "/memory.max", "/memory.current"
	if version == 1 {
		bound, usage = "/memory.limit_in_bytes", "/memory.usage_in_bytes"
	}
	for _, dir := range dirs {
		if n, is := m.number(dir + bound); is && n < 1<<60 && (!ok || n < bytes) {
			bytes, ok = n, true
			used, _ = m.number(dir + usage)
		}
	}
	return bytes, used, ok
}
