package task

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Identity tells a process from a later one of the same number, and its program
// from the one that it runs next. Identities can be compared.
type Identity struct {
	Started  uint64 // in the kernel's ticks
	Dev, Ino uint64 // of the program's file

	stack   uint64 // where its stack begins, mostly another one after exec
	size    int64
	written unix.Timespec
}

// Identify returns the identity of the process that has a number now. The error is
// ErrEnded if it waits to be reaped, else that of reading the kernel's files.
func Identify(pid int) (Identity, error) {
	s, err := ReadStat(pid)
	if err != nil {
		return Identity{}, err
	}
	if s.Ended() {
		return Identity{}, ErrEnded
	}
	var at unix.Stat_t
	if err := unix.Stat(Path(pid, "exe"), &at); err != nil {
		return Identity{}, err
	}
	return Identity{s.Started, uint64(at.Dev), at.Ino, s.Stack, at.Size, at.Mtim}, nil
}

// Runs reports whether a process still runs the program of that identity, by the program's
// file alone. That takes one call of the kernel, where reading an identity takes ten times
// as long, and does not see a program that begins itself anew.
func (i Identity) Runs(pid int) bool {
	var at unix.Stat_t
	return unix.Stat(Path(pid, "exe"), &at) == nil && i == Identity{i.Started, uint64(at.Dev), at.Ino, i.stack, at.Size, at.Mtim}
}

// Monitor is the thread of a Go program that runs runtime.sysmon: the first that the program's
// first thread started, and so the second of the kernel's list, which is in the order of their
// beginnings.
type Monitor struct {
	PID int

	thread string // its number; "": not looked for yet
}

// CPU returns how much CPU it has used so far. It looks for the thread once, since to list all
// threads takes several times as long as to read what one has used (BenchmarkMonitor), and again
// if that one has ended: it was a library's then.
func (m *Monitor) CPU() (time.Duration, error) {
	if m.thread != "" {
		if used, err := m.read(); err == nil {
			return used, nil
		}
	}
	dir, err := os.Open(Path(m.PID, "task"))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	threads, err := dir.Readdirnames(2)
	if err != nil {
		return 0, err
	}
	if len(threads) < 2 {
		return 0, fmt.Errorf("process %d has one thread", m.PID)
	}
	m.thread = threads[1]
	return m.read()
}

// read reads what the thread has used.
//
// Note: os.ReadFile calls the kernel more than twice as often.
func (m *Monitor) read() (time.Duration, error) {
	var line [64]byte // three numbers, the first in nanoseconds
	fd, err := unix.Open(Path(m.PID, "task/"+m.thread+"/schedstat"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	n, err := unix.Read(fd, line[:])
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return 0, err
	}
	ran, _, _ := strings.Cut(string(line[:n]), " ")
	ns, err := strconv.ParseInt(ran, 10, 64)
	return time.Duration(ns), err
}

// SystemMonitor returns how much CPU the system monitor of a process has used.
func SystemMonitor(pid int) (time.Duration, error) { return (&Monitor{PID: pid}).CPU() }

// OfKernel reports whether a number is that of a thread of the kernel, which runs
// no program and looks like a process that is ending.
func OfKernel(pid int) bool {
	const thread = 0x00200000 // PF_KTHREAD of linux/sched.h
	s, err := ReadStat(pid)
	return err == nil && s.Flags&thread != 0
}

// CPU returns how much CPU a process has used, threads that ended included.
func CPU(pid int) (time.Duration, error) {
	// How the kernel writes a process's clock as a number: the process, inverted,
	// and above three bits that say which clock; 2 is what the scheduler counts.
	const scheduler = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &ts); err != nil {
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ESRCH) {
			return 0, ErrEnded // there is no such clock any more
		}
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}
