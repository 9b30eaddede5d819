//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/pclntab"
	"github.com/tarehq/tare/internal/task"
)

// program is what is known of a program, however many processes run it.
type program struct {
	table  *pclntab.Table // nil if it is no Go program that can be read
	why    error          // why not
	deltas pclntab.Deltas

	grows   pclntab.Func   // that has a goroutine's stack grow, among other things
	growing []pclntab.Func // what it calls for that
}

// programs are those that were read, by their files: the tables of a large one take
// tens of megabytes, and a group may begin many processes of it.
type programs map[file]*program

// file tells a file from others, and from what it held before.
type file struct {
	dev, ino uint64
	size     int64
	written  unix.Timespec
}

// process is one that is watched, for as long as it runs one program.
type process struct {
	*program
	pid  int
	nth  int // of those that were watched
	id   task.Identity
	name string
	maps []task.Mapping
	exe  string
	bias uint64

	monitor     task.Monitor
	begun, last usage  // when first and last looked at
	weight      uint64 // of its samples
	leaves      uint64 // times that its threads stopped running
	seen        int
	ended       bool

	frames map[uint64][]cost.Frame // by address, -1 for a return address
}

// usage is the CPU that a process has used, and of that the thread of Go's system monitor.
type usage struct{ cpu, monitor time.Duration }

// errKernel says what the threads are that run no program.
var errKernel = fmt.Errorf("%w: it is a thread of the kernel and runs no program", cost.ErrNotSupported)

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

// process looks at a process. One that is no Go program is an error only in its
// field why.
func (all programs) process(pid int) (*process, error) {
	id, err := task.Identify(pid)
	if err != nil {
		return nil, gone(err)
	}
	p := &process{pid: pid, id: id, monitor: task.Monitor{PID: pid}, frames: map[uint64][]cost.Frame{}}
	if p.last.cpu, err = CPU(pid); err != nil {
		return nil, gone(err)
	}
	if p.exe, err = os.Readlink(task.Path(pid, "exe")); err != nil {
		return nil, gone(err)
	}
	p.name = task.ProgramName(p.exe)
	if p.maps, err = task.Maps(pid); err != nil {
		return nil, gone(err)
	}
	if p.program, err = all.read(task.Path(pid, "exe")); err != nil {
		return nil, gone(err)
	}
	if p.table != nil && !p.place() {
		p.program = &program{why: fmt.Errorf("%w: its code is nowhere in its memory", cost.ErrNotSupported)}
	}
	p.noteMonitor() // whether it has ended meanwhile, the next look tells
	p.begun = p.last
	return p, nil
}

// read reads a program, unless it was read before.
func (all programs) read(path string) (*program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var at unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &at); err != nil {
		f.Close()
		return nil, err
	}
	of := file{uint64(at.Dev), at.Ino, at.Size, at.Mtim}
	if known := all[of]; known != nil {
		return known, f.Close()
	}
	g := new(program)
	g.table, err = pclntab.ReadFile(f)
	switch {
	case errors.Is(err, pclntab.ErrUnsupported):
		g.why = fmt.Errorf("%w: %w", cost.ErrNotSupported, err)
	case err != nil:
		return nil, err
	default:
		g.growth()
	}
	all[of] = g
	return g, nil
}

// Close closes the programs' files.
func (all programs) Close() error { return all.drop(func(*program) bool { return true }) }

// drop closes the files of programs, and forgets them. The others' memory is given back.
func (all programs) drop(which func(*program) bool) error {
	var errs []error
	for at, g := range all {
		if !which(g) {
			g.table.Cool()
			continue
		}
		delete(all, at)
		if g.table != nil {
			errs = append(errs, g.table.Close())
		}
	}
	return errors.Join(errs...)
}

// growth finds the functions of Go's runtime that have a goroutine's stack grow.
func (g *program) growth() {
	for _, fn := range g.table.Find("runtime.newstack", "runtime.copystack", "runtime.findfunc", "runtime.funcMaxSPDelta") {
		if fn.Name != "runtime.newstack" {
			g.growing = append(g.growing, fn)
		} else if len(g.table.Frames(fn.Entry)) > 0 { // not what assembly calls it by
			g.grows = fn
		}
	}
}

// sampled returns what the program in the kernel is to know of the process's.
func (p *process) sampled() samplerProgram {
	if p.table == nil {
		return samplerProgram{}
	}
	from, to := p.table.Code()
	known := samplerProgram{Text: from + p.bias, TextBytes: to - from}
	if p.grows.Entry != 0 {
		known.Grows, known.GrowsBytes = p.grows.Entry+p.bias, uint32(p.grows.End-p.grows.Entry)
		known.Curg, known.Bp = uint32(p.table.Current()), uint32(p.table.Frame())
	}
	return known
}

// place finds where the program lies in memory.
func (p *process) place() (ok bool) {
	p.bias, ok = task.Bias(p.maps, p.exe, p.table.Bias)
	return ok
}

// checkAlive notes the CPU used so far, and whether the process is there, for which no file is
// read. Closely, it sees whether the process still is what it was: the same program that
// begins anew lies elsewhere in memory if it can lie anywhere.
func (p *process) checkAlive(closely bool) {
	if closely {
		id, err := task.Identify(p.pid)
		p.ended = p.ended || err != nil || id != p.id
	}
	used, err := CPU(p.pid)
	// A clock that went back is that of another process by this number.
	if p.ended = p.ended || err != nil || used < p.last.cpu; !p.ended {
		p.last.cpu = used
	}
}

// noteMonitor notes what the system monitor of a Go program has used so far.
func (p *process) noteMonitor() {
	if p.table == nil || p.ended {
		return
	}
	if used, err := p.monitor.CPU(); err == nil {
		p.last.monitor = used
	}
}

// CPU returns how much CPU a process has used, threads that ended included.
func CPU(pid int) (time.Duration, error) { return task.CPU(pid) }

// SystemMonitor returns how much of it the thread has used by which the Go runtime
// watches all others. No profile of the runtime's sees that one.
func SystemMonitor(pid int) (time.Duration, error) { return task.SystemMonitor(pid) }
