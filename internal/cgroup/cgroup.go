// Package cgroup reads control groups: what they allow a process, which processes they
// hold, and which of them is a container's.
//
// A group is bounded by its own limits and by those of the groups around it, so the
// tightest counts. Version 1 mounts a hierarchy a controller, version 2 one for all; a
// system may mix both. No well-kept library reads both and finds the mounts itself:
// prometheus/procfs reads which groups a process is in, but not their limits.
package cgroup

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits are the tightest bounds on a process.
type Limits struct {
	CPU    Quota
	Memory int64 // in bytes; 0 if there is no bound
	Used   int64 // memory in use of that bound, in bytes
}

// Quota is how much CPU a group may use, and how often it was held back.
type Quota struct {
	CPUs      float64       // of CPU time a second; 0 if there is no bound
	Period    time.Duration `json:"-"` // in which it may use CPUs × Period
	Periods   int64         // in which it ran
	Throttled int64         // of these, in which it was held back
	Waited    time.Duration
}

// Read reads the limits of a process, given by its number or as "self". The system's
// files are below root.
func Read(root fs.FS, pid string) (Limits, error) {
	groups, err := fs.ReadFile(root, path.Join("proc", pid, "cgroup"))
	if err != nil {
		return Limits{}, err
	}
	r := reader{root, string(groups), text(root, "proc/self/mountinfo")}
	var l Limits
	l.CPU = r.quota()
	l.Memory, l.Used = r.memory()
	return l, nil
}

// reader reads the limits of one process.
type reader struct {
	root           fs.FS
	groups, mounts string // files of /proc
}

// folders finds the group that a controller holds the process in. It returns the
// group's folder, then those above it, up to what this system shows: in a container
// that is the container's own group.
func (r *reader) folders(controller string) (dirs []string, version int) {
	paths := map[int]string{}
	for line := range strings.Lines(r.groups) {
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
		above, at, mounted := r.mount(controller, version)
		if !in || !mounted {
			continue
		}
		// A path that is not below the mount's root was given by somebody outside
		// of this container; the mount then is the container's own group.
		below, ok := strings.CutPrefix(own, strings.TrimSuffix(above, "/")+"/")
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
func (r *reader) mount(controller string, version int) (above, at string, ok bool) {
	for line := range strings.Lines(r.mounts) {
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

func (r *reader) quota() Quota {
	tightest := Quota{CPUs: math.Inf(1)}
	dirs, version := r.folders("cpu")
	for _, dir := range dirs {
		var allowed, period string
		if version == 2 {
			allowed, period, _ = strings.Cut(text(r.root, dir+"/cpu.max"), " ")
		} else {
			allowed, period = text(r.root, dir+"/cpu.cfs_quota_us"), text(r.root, dir+"/cpu.cfs_period_us")
		}
		us, every := number(allowed), number(period) // "max" and -1 are no bound
		if cpus := float64(us) / float64(every); us > 0 && every > 0 && cpus < tightest.CPUs {
			tightest = Quota{CPUs: cpus, Period: time.Duration(every) * time.Microsecond}
			tightest.countHeldBack(text(r.root, dir+"/cpu.stat"))
		}
	}
	if math.IsInf(tightest.CPUs, 1) {
		return Quota{}
	}
	return tightest
}

// countHeldBack reads cpu.stat, whose time goes by another name and unit in each
// version.
func (q *Quota) countHeldBack(stat string) {
	for line := range strings.Lines(stat) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch n := number(value); key {
		case "nr_periods":
			q.Periods = n
		case "nr_throttled":
			q.Throttled = n
		case "throttled_usec":
			q.Waited = time.Duration(n) * time.Microsecond
		case "throttled_time":
			q.Waited = time.Duration(n)
		}
	}
}

// memory is the tightest bound on memory and what is used of it. Version 1 writes an
// absent bound as a number near 2⁶³.
func (r *reader) memory() (bound, used int64) {
	dirs, version := r.folders("memory")
	file, usage := "/memory.max", "/memory.current"
	if version == 1 {
		file, usage = "/memory.limit_in_bytes", "/memory.usage_in_bytes"
	}
	for _, dir := range dirs {
		if n := number(text(r.root, dir+file)); n > 0 && n < 1<<60 && (bound == 0 || n < bound) {
			bound, used = n, number(text(r.root, dir+usage))
		}
	}
	return bound, used
}

// text returns a file's content without the space around it, "" when it cannot be read.
func text(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads a number, 0 of what is none.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
