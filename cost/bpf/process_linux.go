//go:build linux && amd64

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/pclntab"
)

// process is one that is watched, for as long as it runs one program.
type process struct {
	pid   int
	id    identity
	name  string
	table *pclntab.Table // nil if it is no Go program that can be read
	why   error          // why not
	maps  []mapping
	exe   string
	bias  uint64

	begun, last time.Duration // the CPU it had used when first and last looked at
	weight      uint64        // of its samples
	seen        int
	ended       bool

	frames map[uint64][]cost.Frame // by address, -1 for a return address
}

// identity tells a process from a later one of the same number, and its program
// from the one that it runs next.
type identity struct {
	started  string
	dev, ino uint64
}

func proc(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// identify returns the identity of the process that has a number now.
func identify(pid int) (identity, error) {
	stat, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return identity{}, gone(err)
	}
	// The name in parentheses may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, started = 0, 19
	if len(fields) <= started || fields[state] == "Z" || fields[state] == "X" {
		return identity{}, ErrEnded
	}
	var at unix.Stat_t
	if err := unix.Stat(proc(pid, "exe"), &at); err != nil {
		return identity{}, gone(err)
	}
	return identity{fields[started], at.Dev, at.Ino}, nil
}

// errKernel says what the threads are that run no program.
var errKernel = fmt.Errorf("%w: it is a thread of the kernel and runs no program", cost.ErrNotSupported)

// ofKernel reports whether a number is that of a thread of the kernel, which runs
// no program and looks like a process that is ending.
func ofKernel(pid int) bool {
	stat, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const at, thread = 6, 0x00200000 // the flags, and PF_KTHREAD of linux/sched.h
	if len(fields) <= at {
		return false
	}
	flags, err := strconv.ParseUint(fields[at], 10, 64)
	return err == nil && flags&thread != 0
}

// gone says what an error on a file in /proc means.
func gone(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return ErrEnded
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: looking into a process of another user's, or of a container's, needs the capability CAP_SYS_PTRACE: %w", cost.ErrNotSupported, err)
	}
	return err
}

// openProcess looks at a process. One that is no Go program is an error only in
// its field why.
func openProcess(pid int) (*process, error) {
	id, err := identify(pid)
	if err != nil {
		return nil, err
	}
	p := &process{pid: pid, id: id, frames: map[uint64][]cost.Frame{}}
	if p.begun, err = CPU(pid); err != nil {
		return nil, gone(err)
	}
	p.last = p.begun
	if p.exe, err = os.Readlink(proc(pid, "exe")); err != nil {
		return nil, gone(err)
	}
	p.name = filepath.Base(strings.TrimSuffix(p.exe, " (deleted)"))
	if err := p.readMaps(); err != nil {
		return nil, err
	}
	if p.table, p.why = pclntab.Open(proc(pid, "exe")); p.why != nil {
		if !errors.Is(p.why, pclntab.ErrUnsupported) {
			return nil, gone(p.why)
		}
		p.why = fmt.Errorf("process %d, %s: %w: %w", pid, p.name, cost.ErrNotSupported, p.why)
		return p, nil
	}
	if !p.place() {
		p.table.Close()
		p.table = nil
		p.why = fmt.Errorf("process %d, %s: %w: its code is nowhere in its memory", pid, p.name, cost.ErrNotSupported)
	}
	return p, nil
}

func (p *process) readMaps() error {
	f, err := os.Open(proc(p.pid, "maps"))
	if err != nil {
		return gone(err)
	}
	defer f.Close()
	p.maps, err = readMaps(f)
	return err
}

// place finds where the program lies in memory.
func (p *process) place() bool {
	for _, m := range p.maps {
		if m.file != p.exe {
			continue
		}
		if bias, ok := p.table.Bias(m.start, m.offset); ok {
			p.bias = bias
			return true
		}
	}
	return false
}

func (p *process) Close() error {
	if p.table == nil {
		return nil
	}
	return p.table.Close()
}

// look notes the CPU used so far, and whether the process still is what it was.
func (p *process) look() {
	if p.ended {
		return
	}
	if id, err := identify(p.pid); err != nil || id != p.id {
		p.ended = true
		return
	}
	if used, err := CPU(p.pid); err == nil {
		p.last = used
	}
}

// CPU returns how much CPU a process has used, threads that ended included.
func CPU(pid int) (time.Duration, error) {
	// How the kernel writes a process's clock as a number: the process, inverted,
	// and above three bits that say which clock; 2 is what the scheduler counts.
	const scheduler = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &ts); err != nil {
		if errors.Is(err, unix.EINVAL) {
			return 0, ErrEnded
		}
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}

// members returns the processes of a control group and of those inside it.
func members(dir string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			if path != dir && errors.Is(err, fs.ErrNotExist) {
				return nil // a group that has just gone
			}
			return err
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		switch {
		case errors.Is(err, syscall.EOPNOTSUPP), err != nil && path != dir:
			return nil // a group of threads, or one that has just gone
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is no control group", dir)
		case err != nil:
			return err
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids, err
}
