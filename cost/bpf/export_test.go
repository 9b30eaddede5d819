//go:build linux && amd64

package bpf

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/kallsyms"
	"github.com/tarehq/tare/cost/internal/pclntab"
	"github.com/tarehq/tare/internal/task"
)

// StartUnmended is Start without the repair of stacks: what following frame
// pointers alone gives.
func StartUnmended(o Options) (*Sampler, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	s.mend = false
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// Settle settles stacks of a process that used so much CPU, its system monitor among it.
func Settle(used, monitor time.Duration, stacks []cost.Stack) []cost.Stack {
	w := &process{last: usage{used, monitor}}
	return w.settle(stacks, true)
}

// Toggle stops the clock or lets it go on.
func (s *Sampler) Toggle(on bool) error { return s.clock.run(on) }

// StartAfter is Start, with something done between what may be refused and the beginning.
func StartAfter(o Options, between func()) (*Sampler, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	between()
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// Watched are the processes that the program in the kernel takes samples of.
func (s *Sampler) Watched() (all []int, err error) {
	var pid uint32
	var p samplerProgram
	at := s.objects.Watched.Iterate()
	for at.Next(&pid, &p) {
		all = append(all, int(pid))
	}
	return all, at.Err()
}

// OfKernel reports whether a number is that of a thread of the kernel.
func OfKernel(pid int) bool { return task.OfKernel(pid) }

// Allowed returns an error if the kernel's setting allows fewer samples a second.
func Allowed(hz int, setting string) error { return allowed(hz, setting) }

// Labels are what addresses of a process, given its list of mappings, are labelled
// by where they are in no function.
func Labels(maps io.Reader, addrs ...uint64) ([]string, error) {
	all, err := task.ReadMaps(maps)
	var labels []string
	for _, a := range addrs {
		m, _ := task.Holding(all, a)
		labels = append(labels, label(m))
	}
	return labels, err
}

// UserNames names a stack of a process that is no Go program, given its list of
// mappings.
func UserNames(maps io.Reader, chain ...uint64) ([]string, error) {
	p := process{program: new(program), frames: map[uint64][]cost.Frame{}}
	var err error
	p.maps, err = task.ReadMaps(maps)
	var names []string
	for _, f := range p.userFrames(chain) {
		names = append(names, f.Func)
	}
	return names, err
}

// WrapperNames names two stacks of this process: a wrapper of Go's runtime alone, and one
// that was called from where goroutines begin.
func WrapperNames() (alone, called []string, err error) {
	all := programs{}
	defer all.Close()
	p, err := all.process(os.Getpid())
	if err != nil {
		return nil, nil, err
	}
	var wrapper, begin uint64
	for fn := range p.table.Funcs() {
		switch {
		case fn.Name == "runtime.goexit1" && len(p.table.Frames(fn.Entry)) == 0:
			wrapper = fn.Entry + p.bias
		case fn.Name == "runtime.goexit":
			begin = fn.Entry + 2 + p.bias
		}
	}
	for _, f := range p.userFrames([]uint64{wrapper}) {
		alone = append(alone, f.Func)
	}
	for _, f := range p.userFrames([]uint64{wrapper, begin}) {
		called = append(called, f.Func)
	}
	return alone, called, nil
}

// Cut reports whether a stack of this process is deeper than the kernel follows, if
// that is as far as it goes.
func Cut(chain ...uint64) (bool, error) {
	all := programs{}
	defer all.Close()
	p, err := all.process(os.Getpid())
	if err != nil {
		return false, err
	}
	return p.cut(chain, len(chain)), p.why
}

// Anew counts samples of one stack, of a process and then of the one that it is once it
// has begun its program anew, and returns how often the stack is kept, in all.
func Anew(before, after int) (kept int) {
	s := &Sampler{procs: map[int]*process{}, stacks: map[string]*seen{}, mend: true}
	const pid, at = 4711, 0x401000
	for _, n := range []int{before, after} {
		s.follow(&process{program: new(program), pid: pid})
		for range n {
			s.add(&samplerAstray{Sample: samplerSample{Pid: pid, Ip: at, Weight: 1}})
		}
	}
	for _, one := range s.stacks {
		kept += one.count
	}
	return kept
}

// Programs returns how many programs are read to watch processes.
func Programs(pids ...int) (int, error) {
	all := programs{}
	defer all.Close()
	for _, pid := range pids {
		if _, err := all.process(pid); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// KernelNames names a stack of the kernel, given its list of functions.
func KernelNames(list io.Reader, addrs ...uint64) ([]string, error) {
	symbols, err := kallsyms.Read(list)
	var names []string
	for _, f := range symbols.Frames(addrs) {
		names = append(names, f.Func)
	}
	return names, err
}

// VerifyGoid checks that goroutines' numbers lie at an offset of their records.
func VerifyGoid(offset int) error { return verifyGoid(offset) }

// VerifyCurrent checks that the goroutine that a thread runs lies at an offset of the
// thread's record.
func VerifyCurrent(offset int) error { return verifyCurrent(offset) }

// Offsets returns both offsets as they are known of this program.
func Offsets() (goid, current int, err error) {
	table, err := pclntab.Open("/proc/self/exe")
	if err != nil {
		return 0, 0, err
	}
	defer table.Close()
	return table.Goid(), table.Current(), nil
}

// OwnNames names the beginning of one of this program's functions, as if the program
// were of that name; nothing if it has no such function.
func OwnNames(function, name string) (names []string, err error) {
	table, err := pclntab.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer table.Close()
	p := process{program: &program{table: table}, exe: name}
	for fn := range table.Funcs() {
		if fn.Name != function {
			continue
		}
		for _, f := range p.tabled(fn.Entry) {
			names = append(names, f.Func)
		}
		break
	}
	return names, nil
}

// Astray is a sample of the ring's.
type Astray = samplerAstray

// Read takes a sample out of the ring.
func Read(raw []byte, into *Astray) error { return read(raw, into) }
