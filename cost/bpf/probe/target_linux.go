//go:build linux && amd64

package probe

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/pclntab"
)

// errGone is what becomes of a process that ended.
var errGone = errors.New("the process has ended")

// Target is a running process written in Go. It is not safe for concurrent use.
type Target struct {
	pid   int
	table *pclntab.Table
	exe   *link.Executable
	bias  uint64            // run-time address - link-time address
	texts map[uint64][]byte // code of functions by where they begin
}

// Open prepares to probe a process; nothing is placed yet.
func Open(pid int) (*Target, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/exe"
	if _, err := os.Stat(path); err != nil {
		return nil, unreadable(pid, err)
	}
	exe, err := link.OpenExecutable(path)
	if err != nil {
		return nil, unreadable(pid, err)
	}
	table, err := pclntab.Open(path)
	switch {
	case errors.Is(err, pclntab.ErrUnsupported):
		return nil, fmt.Errorf("reading functions of process %d: %w: %w", pid, cost.ErrNotSupported, err)
	case err != nil:
		return nil, fmt.Errorf("reading functions of process %d: %w", pid, err)
	}
	t := &Target{pid: pid, table: table, exe: exe, texts: map[uint64][]byte{}}
	if t.bias, err = loadedAt(pid, table); err != nil {
		table.Close()
		return nil, fmt.Errorf("finding the code of process %d: %w", pid, err)
	}
	return t, nil
}

func unreadable(pid int, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("no process %d: %w", pid, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("reading process %d needs root, or CAP_SYS_PTRACE: %w: %w", pid, cost.ErrNotSupported, err)
	}
	return fmt.Errorf("reading process %d: %w", pid, err)
}

// loadedAt returns how far from its link-time address a program was loaded.
func loadedAt(pid int, table *pclntab.Table) (uint64, error) {
	proc := "/proc/" + strconv.Itoa(pid)
	exe, err := os.Readlink(proc + "/exe")
	if err != nil {
		return 0, err
	}
	f, err := os.Open(proc + "/maps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // range, rights, offset, device, inode, path
		if len(fields) < 6 || !strings.Contains(fields[1], "x") || !strings.HasSuffix(lines.Text(), exe) {
			continue
		}
		from, _, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			return 0, err
		}
		offset, err := strconv.ParseUint(fields[2], 16, 64)
		if err != nil {
			return 0, err
		}
		if bias, ok := table.Bias(start, offset); ok {
			return bias, nil
		}
	}
	return 0, errors.Join(errors.New("it is not mapped"), lines.Err())
}

// Close closes the process's file. It ends nothing that was made of the target.
func (t *Target) Close() error { return t.table.Close() }

// CPU returns the CPU time that the process has used, in all its threads.
func (t *Target) CPU() (time.Duration, error) {
	// The number of a process's CPU clock: its own inverted, and the kind of clock.
	const sched = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^t.pid<<3|sched), &ts); err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", t.pid, errors.Join(errGone, err))
	}
	return time.Duration(ts.Nano()), nil
}

// code implements program.
func (t *Target) code(pc uint64) []byte {
	fn, ok := t.table.Lookup(pc)
	if !ok {
		return nil
	}
	text, ok := t.texts[fn.Entry]
	if !ok {
		text, _ = t.table.Text(fn) // without it there is no mark, which is said
		t.texts[fn.Entry] = text
	}
	if at := pc - fn.Entry; at < uint64(len(text)) {
		return text[at:]
	}
	return nil
}

// function implements program.
func (t *Target) function(pc uint64) string {
	fn, _ := t.table.Lookup(pc)
	return fn.Name
}

// delta implements program.
func (t *Target) delta(pc uint64) (int, bool) { return t.table.SPDelta(pc) }

// literals implements program. What ends a request's context is called by
// net/http right after the handlers.
func (t *Target) literals(fn string) []uint64 {
	var pushes []uint64
	for f := range t.table.Funcs() {
		ends := fn == "net/http.(*conn).serve" && strings.HasSuffix(f.Name, ".WithCancel.func1")
		if !ends && !strings.HasPrefix(f.Name, fn+".") {
			continue
		}
		if push, ok := t.table.Push(f); ok {
			pushes = append(pushes, push)
		}
	}
	return pushes
}

// places returns what return addresses stand for.
func (t *Target) places(rets []uint64) []place {
	places := make([]place, len(rets))
	for i, ret := range rets {
		for _, f := range t.table.Frames(ret - 1) {
			places[i].frames = append(places[i].frames, frameOf(f))
		}
		if fn, ok := t.table.Lookup(ret - 1); ok {
			push, _ := t.table.Push(fn)
			places[i].in = symbol{fn.Name, push}
		}
	}
	return places
}

func frameOf(f pclntab.Frame) cost.Frame {
	if f.File == "?" {
		f.File = ""
	}
	return cost.Frame{Func: f.Func, File: f.File, Line: f.Line, Decl: f.Decl}
}
