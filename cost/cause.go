package cost

import "strings"

// Cause is what was done on an owner's behalf.
type Cause int

// Causes, the first that fits counts.
const (
	GC Cause = iota // the collector's work, assists among it
	Alloc
	Kernel // system calls
	Scheduling
	Locks
	Channels
	StackGrowth
	JSON
	Formatting
	Reflection
	DeferPanic
	Maps
	Contexts
	Clock
	Own // its own code, and what it calls that is none of the above
	causes
)

var causeNames = [...]string{
	"gc", "alloc", "kernel", "scheduling", "locks", "channels", "stack growth", "json",
	"formatting", "reflection", "defer and panic", "maps", "contexts", "clock", "own",
}

func (c Cause) String() string { return causeNames[c] }

// marks are the prefixes of functions that show a cause, in the order of causes.
var marks = [causes][]string{
	GC:          {"runtime.gcAssistAlloc", "runtime.gcDrain", "runtime.gcStart", "runtime.deductAssistCredit", "runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcWriteBarrier", "runtime.wbBufFlush"},
	Alloc:       {"runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice", "runtime.memclrNoHeapPointersChunked"},
	Kernel:      {"internal/runtime/syscall", "syscall.Syscall", "syscall.RawSyscall", "syscall.syscall", "runtime.futex", "runtime.epollwait", "runtime.write1", "runtime.madvise", "runtime.usleep", "[kernel]"},
	Scheduling:  {"runtime.mcall", "runtime.schedule", "runtime.gopark", "runtime.goready", "runtime.ready", "runtime.newproc", "runtime.findRunnable", "runtime.entersyscall", "runtime.exitsyscall", "runtime.wakep", "runtime.goexit0", SystemMonitor},
	Locks:       {"sync.(*Mutex)", "internal/sync.(*Mutex)", "sync.(*RWMutex)", "runtime.semacquire", "runtime.semrelease", "runtime.lock2", "runtime.unlock2"},
	Channels:    {"runtime.chan", "runtime.selectgo", "runtime.selectnb"},
	StackGrowth: {"runtime.morestack", "runtime.newstack", "runtime.copystack"},
	JSON:        {"encoding/json"},
	Formatting:  {"fmt."},
	Reflection:  {"reflect."},
	DeferPanic:  {"runtime.deferreturn", "runtime.deferproc", "runtime.gopanic", "runtime.gorecover"},
	Maps:        {"internal/runtime/maps", "runtime.map"},
	Contexts:    {"context."},
	Clock:       {"time."},
}

// causeOf says what the frames inside an owner's were about.
func causeOf(frames []Frame) Cause {
	for c := GC; c < Own; c++ {
		for i := range frames {
			for _, mark := range marks[c] {
				if strings.HasPrefix(frames[i].Func, mark) {
					return c
				}
			}
		}
	}
	return Own
}
