//go:build linux && (amd64 || arm64)

package probe

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/internal/pclntab"
	"github.com/tarehq/tare/internal/task"
)

// errGone is what becomes of a process that ended.
var errGone = fmt.Errorf("%w, or runs another program now", bpf.ErrEnded)

// Target is a running process written in Go, for as long as it runs one program.
// It is not safe for concurrent use.
type Target struct {
	pid   int
	id    task.Identity
	table *pclntab.Table
	exe   *os.File          // the program: what its path leads to may change
	bias  uint64            // run-time address - link-time address
	texts map[uint64][]byte // code of functions by where they begin
	guard guard
	file  *link.Executable // nil until a probe is placed: what is read for it does not change

	sampled []cost.Stack // what is known of who handles requests
}

// Open prepares to probe a process; nothing is placed yet.
func Open(pid int) (*Target, error) {
	id, err := task.Identify(pid)
	if err != nil {
		return nil, unreadable(pid, err)
	}
	exe, err := os.Open(task.Path(pid, "exe"))
	if err != nil {
		return nil, unreadable(pid, err)
	}
	t := &Target{pid: pid, id: id, exe: exe, texts: map[uint64][]byte{}}
	if err := t.read(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// read reads the program's functions, and where it was loaded.
func (t *Target) read() (err error) {
	t.table, err = pclntab.Open(t.path())
	switch {
	case errors.Is(err, pclntab.ErrUnsupported):
		return fmt.Errorf("reading functions of process %d: %w: %w", t.pid, cost.ErrNotSupported, err)
	case err != nil:
		return fmt.Errorf("reading functions of process %d: %w", t.pid, err)
	}
	if t.bias, err = loadedAt(t.pid, t.table); err != nil {
		return fmt.Errorf("finding the code of process %d: %w", t.pid, err)
	}
	// Probes are written into code at places that these tables give.
	if err := bpf.Verify(); err != nil {
		return err
	}
	return t.same()
}

// path leads to the file of the program that was opened, whatever has become of
// its name and of the process: the kernel follows a path anew at every attaching,
// and a probe on another program's instructions would break it.
func (t *Target) path() string { return fmt.Sprintf("/proc/self/fd/%d", t.exe.Fd()) }

// executable returns the program, to attach probes to. It is an error if the
// process has ended or runs another one.
func (t *Target) executable() (_ *link.Executable, err error) {
	if err := t.same(); err != nil {
		return nil, err
	}
	if t.file == nil {
		t.file, err = link.OpenExecutable(t.path())
	}
	return t.file, err
}

// same returns an error unless the process still is what was opened.
func (t *Target) same() error {
	id, err := task.Identify(t.pid)
	switch {
	case err == nil && id == t.id:
		return nil
	case err == nil, errors.Is(err, task.ErrEnded), errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		return fmt.Errorf("looking at process %d: %w", t.pid, errGone)
	}
	return fmt.Errorf("looking at process %d: %w: %w", t.pid, errGone, err)
}

func unreadable(pid int, err error) error {
	switch {
	case errors.Is(err, task.ErrEnded), errors.Is(err, os.ErrNotExist):
		if _, other := os.Stat("/proc/" + strconv.Itoa(pid)); other == nil {
			return fmt.Errorf("process %d has no program: it is a thread of the kernel, or has ended", pid)
		}
		return fmt.Errorf("no process %d: %w", pid, err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("reading process %d needs root, or CAP_SYS_PTRACE: %w: %w", pid, cost.ErrNotSupported, err)
	}
	return fmt.Errorf("reading process %d: %w", pid, err)
}

// loadedAt returns how far from its link-time address a program was loaded.
func loadedAt(pid int, table *pclntab.Table) (uint64, error) {
	exe, err := os.Readlink(task.Path(pid, "exe"))
	if err != nil {
		return 0, err
	}
	maps, err := task.Maps(pid)
	if err != nil {
		return 0, err
	}
	if bias, ok := task.Bias(maps, exe, table.Bias); ok {
		return bias, nil
	}
	return 0, errors.New("it is not mapped")
}

// Close closes the process's file. It ends nothing that was made of the target,
// but no probes can be placed any more, and those that are stay where they are
// when this process is stopped from its terminal.
func (t *Target) Close() error {
	t.guard.close()
	err := t.exe.Close()
	if t.table == nil {
		return err
	}
	return errors.Join(err, t.table.Close())
}

// CPU returns the CPU time that the process has used, in all its threads.
func (t *Target) CPU() (time.Duration, error) {
	used, err := task.CPU(t.pid)
	if err != nil {
		if errors.Is(err, task.ErrEnded) {
			err = errGone
		}
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", t.pid, err)
	}
	if !t.id.Runs(t.pid) { // looked at last: then the clock was this program's
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", t.pid, errGone)
	}
	return used, nil
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
