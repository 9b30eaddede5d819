package sys

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Confine keeps all threads of this process, those that will be among them, on some CPUs
// until release lets them go where they were allowed before. Threads with a place of their
// own lose it. Without CPUs, or where the kernel refuses, nothing is kept anywhere.
func Confine(cpus []int) (release func()) {
	var before, now unix.CPUSet
	if len(cpus) == 0 || unix.SchedGetaffinity(0, &before) != nil {
		return func() {}
	}
	for _, cpu := range cpus {
		now.Set(cpu)
	}
	if unix.SchedSetaffinity(0, &now) != nil {
		return func() {}
	}
	allow(&now)
	return func() { allow(&before) }
}

// allow gives every thread a set of CPUs. A thread that one without it has begun meanwhile
// is found by the next look.
func allow(set *unix.CPUSet) {
	seen := map[int]bool{}
	for range 10 {
		more := false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err == nil && !seen[tid] {
				seen[tid], more = true, true
				_ = unix.SchedSetaffinity(tid, set) // the thread may have ended
			}
		}
		if !more {
			return
		}
	}
}
