package arm

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/tarehq/tare/internal/task"
)

// Usage reads what the process and its descendants have used. Proportional
// memory is read only if asked for: the kernel walks every page for it.
//
// CPU is the sum of the processes' own clocks (the kernel's sum_exec_runtime,
// the source of schedstat, but of all threads, also those that ended): exact
// to the scheduler's last switch or tick. Children that ended and were waited
// for count to 10 ms each; those that nobody waits for are lost.
//
// Note: /proc/PID/schedstat is the main thread's alone, its sum over
// /proc/PID/task misses threads that ended, and stat counts in 10 ms. Of a
// process with 300.4 ms the first said 299.2 and the last 300.
func (a *Process) Usage(withPSS bool) (Usage, error) {
	if err := a.alive(); err != nil {
		return Usage{}, fmt.Errorf("reading usage: %w", err)
	}
	members, err := family(a.PID(), a.guard.cmd.Process.Pid)
	if err != nil {
		return Usage{}, fmt.Errorf("reading usage: %w", err)
	}
	var sum Usage
	for _, s := range members {
		u, err := usageOf(s, withPSS)
		if vanished(err) && s.PID != a.PID() {
			continue // a child that ended meanwhile; its parent has its CPU
		}
		if err != nil {
			return Usage{}, fmt.Errorf("reading usage of process %d: %w", s.PID, err)
		}
		sum.add(u)
	}
	if sum.Processes == 0 {
		return Usage{}, errors.New("reading usage: the arm has ended")
	}
	return sum, nil
}

func (u *Usage) add(v Usage) {
	u.CPU += v.CPU
	u.RSS += v.RSS
	u.PeakRSS += v.PeakRSS
	u.PSS += v.PSS
	u.MinorFaults += v.MinorFaults
	u.MajorFaults += v.MajorFaults
	u.Voluntary += v.Voluntary
	u.Involuntary += v.Involuntary
	u.Threads += v.Threads
	u.Processes += v.Processes
}

func usageOf(s task.Stat, withPSS bool) (Usage, error) {
	u := Usage{MinorFaults: s.MinorFaults, MajorFaults: s.MajorFaults, Threads: s.Threads, Processes: 1}
	cpu, err := task.CPU(s.PID)
	if err != nil {
		return u, err
	}
	u.CPU = cpu + s.ReapedCPU
	dir := "/proc/" + strconv.Itoa(s.PID)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, err
	}
	u.RSS, u.PeakRSS = colon(status, "VmRSS")<<10, colon(status, "VmHWM")<<10
	if u.Voluntary, u.Involuntary, err = switches(dir); err != nil {
		return u, err
	}
	if withPSS {
		rollup, err := os.ReadFile(dir + "/smaps_rollup")
		if err != nil {
			return u, err
		}
		u.PSS = colon(rollup, "Pss") << 10
	}
	return u, nil
}

// peakOf is the most memory that a process and the children of its main thread
// that live now have had, in bytes; 0 when it has ended.
func peakOf(pid int) uint64 {
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0
	}
	peak := colon(status, "VmHWM") << 10
	children, err := os.ReadFile(dir + "/task/" + strconv.Itoa(pid) + "/children")
	if err != nil {
		return peak // a kernel without CONFIG_PROC_CHILDREN
	}
	for _, child := range strings.Fields(string(children)) {
		if id, err := strconv.Atoi(child); err == nil {
			peak += peakOf(id)
		}
	}
	return peak
}

// switches sums the context switches of the threads; /proc/PID/status has the
// main thread's only.
func switches(dir string) (voluntary, involuntary uint64, err error) {
	tasks, err := list(dir + "/task")
	if err != nil {
		return 0, 0, err
	}
	for _, t := range tasks {
		status, err := os.ReadFile(dir + "/task/" + t + "/status")
		if vanished(err) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		voluntary += colon(status, "voluntary_ctxt_switches")
		involuntary += colon(status, "nonvoluntary_ctxt_switches")
	}
	return voluntary, involuntary, nil
}

// vanished reports whether reading failed because the process or thread ended.
func vanished(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, task.ErrEnded)
}
