//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/pclntab"
	"github.com/tarehq/tare/internal/task"
)

// Verify holds what this program reads of its own tables, and of its own
// goroutines' records, against what its runtime says, so that a toolchain that
// changed them is noticed before they are believed of others. It is an error that
// wraps cost.ErrNotSupported if they differ, or if nothing can be said because this
// program was built by a version of Go that is not known. It is done once.
func Verify() error { return verified() }

var verified = sync.OnceValue(verify)

func verify() error {
	table, err := pclntab.Open("/proc/self/exe")
	switch {
	case errors.Is(err, pclntab.ErrUnsupported):
		return fmt.Errorf("%w: what is known of Go's tables cannot be checked on this program itself: %w", cost.ErrNotSupported, err)
	case err != nil:
		return err
	}
	defer table.Close()
	if err := verifyFrames(table); err != nil {
		return err
	}
	if err := verifyGoid(table.Goid()); err != nil {
		return err
	}
	return verifyCurrent(table.Current())
}

// verifyFrames checks the names and lines of the functions that called this one.
func verifyFrames(table *pclntab.Table) error {
	self, err := openSelf(table)
	if err != nil {
		return err
	}
	var pcs [32]uintptr
	n := runtime.Callers(1, pcs[:])
	frames := runtime.CallersFrames(pcs[:n])
	for _, pc := range pcs[:n] {
		want, _ := frames.Next()
		got := table.Frames(uint64(pc) - 1 - self.bias)
		if len(got) == 0 || got[0].Func != want.Function || got[0].Line != want.Line {
			return fmt.Errorf("%w: this program's own functions are misread: %v where its runtime has %s:%d", cost.ErrNotSupported, got, strings.TrimSpace(want.Function), want.Line)
		}
	}
	return nil
}

// verifyGoid checks that the number of this goroutine, as a traceback has it, lies
// at an offset of the runtime's record of it.
func verifyGoid(offset int) error {
	const largest = 1 << 10 // a wrong offset is not to lead out of memory
	if offset < 0 || offset > largest {
		return fmt.Errorf("%w: a goroutine's number is said to lie at %d in its record", cost.ErrNotSupported, offset)
	}
	var header [64]byte
	var want uint64
	text := header[:runtime.Stack(header[:], false)]
	if _, err := fmt.Sscanf(string(text), "goroutine %d ", &want); err != nil {
		return fmt.Errorf("%w: the runtime does not say which goroutine this is, but %q", cost.ErrNotSupported, text)
	}
	if got := ofGoroutine(uintptr(offset)); got != want {
		return fmt.Errorf("%w: cannot distinguish goroutines of this program: this one is %d, but at %d in its record is %d", cost.ErrNotSupported, want, offset, got)
	}
	return nil
}

// ofGoroutine returns the word at an offset of the runtime's record of this
// goroutine.
func ofGoroutine(offset uintptr) uint64

// ofThread returns the word at an offset of the runtime's record of the thread that
// runs this goroutine.
func ofThread(offset uintptr) uint64

// verifyCurrent checks that this goroutine, as its own record has it, lies at an offset
// of the runtime's record of its thread. Before it there lies what a goroutine leaves
// its registers in, so that it lies elsewhere if that has another size; the frame
// pointer is the last of these.
func verifyCurrent(offset int) error {
	const largest, itself = 1 << 10, 72
	if offset < 0 || offset > largest {
		return fmt.Errorf("%w: the goroutine that a thread runs is said to lie at %d in its record", cost.ErrNotSupported, offset)
	}
	if got, want := ofThread(uintptr(offset)), ofGoroutine(itself); got != want || want == 0 {
		return fmt.Errorf("%w: cannot identify the goroutine that a thread runs: this one is at %#x, but at %d in its thread's record is %#x", cost.ErrNotSupported, want, offset, got)
	}
	return nil
}

// openSelf finds where this program lies in memory.
func openSelf(table *pclntab.Table) (*process, error) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	p := &process{program: &program{table: table}, pid: os.Getpid(), exe: exe}
	if p.maps, err = task.Maps(p.pid); err != nil {
		return nil, gone(err)
	}
	if !p.place() {
		return nil, fmt.Errorf("%w: this program's own code is nowhere in its memory", cost.ErrNotSupported)
	}
	return p, nil
}
