package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
)

// readArm reads the captures of an arm of a run, RUN:ARM or RUN:ARM:WORKLOAD; it
// reports whether the source is one.
func (s *sides) readArm() (bool, error) {
	name, rest, ok := strings.Cut(s.source, ":")
	port, _, _ := strings.Cut(rest, "/")
	if !ok || name == "pid" || strings.HasPrefix(name, "[") || strings.Trim(port, "0123456789") == "" { // a process, or host:port
		return false, nil
	}
	dir, err := runs.Find(name)
	if err != nil {
		return true, err
	}
	run, err := record.Open(dir)
	if err != nil {
		return true, err
	}
	arm, workload, _ := strings.Cut(rest, ":")
	var of []record.Capture
	var workloads []string
	for _, c := range run.Captures {
		if c.Arm != arm || len(c.Invalid) > 0 || workload != "" && c.Workload != workload {
			continue
		}
		if !slices.Contains(workloads, c.Workload) {
			workloads = append(workloads, c.Workload)
		}
		of = append(of, c)
	}
	if len(workloads) == 0 {
		if err := runs.AllLost(run, runs.LostCaptures(run, arm, workload)); err != nil {
			return true, err
		}
	}
	switch {
	case len(workloads) == 0:
		return true, cli.Usage("a study asks for profiles by its key attribute", fmt.Errorf("%s: the run has no profiles of it", s.source))
	case len(workloads) > 1:
		return true, cli.Usage(fmt.Sprintf("%s:%s:%s", name, arm, workloads[0]), fmt.Errorf("%s has profiles under %d workloads: say which", s.source, len(workloads)))
	}
	for _, c := range telling(of) {
		if err := s.addCapture(run, c); err != nil {
			return true, err
		}
	}
	return true, nil
}

// addCapture takes a capture's profiles, if it is no trace.
func (s *sides) addCapture(run *record.Run, c record.Capture) error {
	w := cost.Window{Duration: c.Elapsed, Requests: float64(c.Requests)}
	for _, seen := range c.Seen {
		if seen.Files["cpu"] == "" {
			continue
		}
		var of [2]*pprof.Profile // CPU, allocations
		for i, kind := range [...]string{"cpu", "allocs"} {
			if seen.Files[kind] == "" {
				continue
			}
			p, err := captured(run, seen.Files[kind])
			if err != nil {
				return err
			}
			s.warn(p.Warnings)
			of[i] = p
		}
		// The profile is shorter than the time over which requests were counted:
		// as in the report, it is scaled to what was counted over all of that, but for
		// how often each stack was seen.
		cpu, allocs := of[0], of[1]
		if allocs != nil {
			allocs.Stacks, c.Objects = allocs.Sampled(), 0
		}
		time, memory, _ := lab.Scaled(&c, cpu, allocs)
		s.add(pprof.CPU, time, w)
		if allocs != nil {
			s.add(pprof.Allocs, memory, w)
		}
	}
	return nil
}
