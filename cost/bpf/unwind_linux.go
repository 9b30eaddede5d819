//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/pclntab"
	"github.com/tarehq/tare/internal/task"
)

// chain returns a sample's stack in the process: where it was, then the return
// addresses, innermost first.
//
// The kernel follows frame pointers. If the function has not set up its own yet,
// has taken it down already or never has one, the frame pointer is its caller's,
// and the chain goes on with the caller's caller. Whether that is so the tables
// say: they know how far the return address is from the stack pointer, and right
// below it is where the frame pointer would have to point. Where it leads nowhere the
// stack itself is followed. Without mend the chain is left as the kernel has it.
func (p *process) chain(a *samplerAstray, mend bool) []uint64 {
	s := &a.Sample
	grows := func(a uint64) bool { return p.lies(a, p.grows) } // the kernel has gone on from there
	if chain := p.followed(a); mend && len(chain) > 1 && !slices.ContainsFunc(chain, grows) {
		return chain
	}
	n := max(0, int(s.UserBytes)/8)
	if n == 0 {
		if s.Ip == 0 {
			return nil
		}
		return []uint64{s.Ip}
	}
	stack := s.User[:min(n, len(s.User))]
	caller, ok := p.hidden(s)
	if !ok || !mend {
		return p.grown(append([]uint64(nil), stack...))
	}
	mended := make([]uint64, 0, len(stack)+1)
	mended = append(mended, stack[0], caller)
	return p.grown(append(mended, stack[1:]...))
}

// followed returns a sample's stack by how far each function's return address is from
// the stack pointer, as the runtime follows it, as far as it was written down; nothing
// but where it was if it was not.
func (p *process) followed(a *samplerAstray) []uint64 {
	chain := []uint64{a.Sample.Ip}
	if p.table == nil || a.Bytes == 0 {
		return chain
	}
	stack := a.Stack[:min(len(a.Stack), int(a.Bytes)/word)]
	for at, pc := untouched, a.Sample.Ip-p.bias; ; {
		delta, ok := p.table.SPDelta(pc)
		if !ok || delta%word != 0 {
			break
		}
		var back uint64
		if back, at, ok = returns(&a.Sample, stack, at, delta/word); !ok {
			break
		}
		pc = back - 1 - p.bias // the call, not what follows it
		f, ok := p.table.Lookup(pc)
		if !ok {
			break
		}
		chain = append(chain, back)
		if f.Name == "runtime.goexit" {
			break
		}
	}
	return chain
}

// word is the size of an address.
const word = 8

// grown ends a chain where a thread has changed over from a goroutine's stack to its
// own, unless to have that one grow. It is changed over by the same function to let
// another goroutine run: the one that the chain goes on with need not be the one that
// it came from.
func (p *process) grown(chain []uint64) []uint64 {
	at := slices.IndexFunc(chain, func(a uint64) bool { return p.lies(a, p.grows) })
	if at < 0 || at > 0 && slices.ContainsFunc(p.growing, func(f pclntab.Func) bool { return p.lies(chain[at-1], f) }) {
		return chain
	}
	return chain[:at+1]
}

// lies reports whether an address is in a function.
func (p *process) lies(addr uint64, f pclntab.Func) bool {
	return addr-p.bias-f.Entry < f.End-f.Entry
}

// longest returns how many calls of a stack the kernel follows.
func longest() int {
	most := len(samplerSample{}.User)
	if b, err := os.ReadFile("/proc/sys/kernel/perf_event_max_stack"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			most = min(most, n)
		}
	}
	return most
}

// cut reports whether a chain ends where the kernel stopped following it, given how
// far it goes, and not where the goroutine began, nor outside all programs and
// libraries: what code without frame pointers has in their place may lead in a circle.
func (p *process) cut(chain []uint64, longest int) bool {
	if p.table == nil || len(chain) == 0 || len(chain) < longest {
		return false
	}
	last := chain[len(chain)-1] - 1 // the call, not what follows it
	if f, ok := p.table.Lookup(last - p.bias); ok {
		return f.Name != "runtime.goexit"
	}
	_, mapped := task.Holding(p.maps, last)
	return mapped
}

// userFrames names a stack of the process, innermost first, up to where it began.
// Code that is not Go's may keep something else where frame pointers are: what a
// chain ends in then, outside all programs and libraries, called nobody. Of a stack that
// is all of wrappers, which have no frames, the innermost is named.
func (p *process) userFrames(chain []uint64) []cost.Frame {
	var frames []cost.Frame
	for i, a := range chain {
		if i > 0 {
			a-- // the call, not what follows it
		}
		named, ok := p.frames[a]
		if !ok {
			named = p.resolveAddress(a)
			p.frames[a] = named
		}
		frames = append(frames, named...)
		if len(named) > 0 && begins(named[len(named)-1].Func) {
			break
		}
	}
	for len(frames) > 1 && frames[len(frames)-1].Func == unknown {
		frames = frames[:len(frames)-1]
	}
	if len(frames) == 0 && len(chain) > 0 {
		f, _ := p.table.Lookup(chain[0] - p.bias)
		return []cost.Frame{{Func: f.Name, File: f.File, Decl: f.Decl}}
	}
	return frames
}

// begins reports whether nobody called a function: threads begin in mstart, and
// mcall changes over to a thread's own stack, as the runtime's tracebacks have it
// too. Before Go 1.26 the chain of frame pointers goes on from there, to whatever
// the thread's stack held before.
func begins(function string) bool {
	return function == "runtime.mstart" || function == "runtime.mcall"
}

// resolveAddress names one address.
func (p *process) resolveAddress(addr uint64) []cost.Frame {
	m, mapped := task.Holding(p.maps, addr)
	if p.table != nil && (!mapped || m.File == p.exe || m.File == "") {
		if _, ok := p.table.Lookup(addr - p.bias); ok {
			return p.tabled(addr - p.bias)
		}
	}
	return []cost.Frame{{Func: label(m)}}
}

// tabled names a link-time address by the program's table. Of functions written in C
// that Go's linker took in, such as the race detector's, the table has the name alone:
// they lie in the program as those do that it has no name of.
func (p *process) tabled(addr uint64) []cost.Frame {
	var frames []cost.Frame
	for _, f := range p.table.Frames(addr) {
		frames = append(frames, cost.Frame{Func: f.Func, File: f.File, Line: f.Line, Decl: f.Decl})
		if f.Line == 0 && f.Decl == 0 {
			frames = append(frames, cost.Frame{Func: label(task.Mapping{File: p.exe})})
		}
	}
	return frames
}

// unknown labels what lies in no program or library.
const unknown = "[unknown]"

// label names code that has no functions by what it lies in.
func label(m task.Mapping) string {
	switch {
	case strings.HasPrefix(m.File, "["):
		return m.File
	case m.File == "":
		return unknown
	}
	return "[" + filepath.Base(m.File) + "]"
}
