package watch

import (
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/watch/pods"
	"github.com/tarehq/tare/internal/cgroup"
	"github.com/tarehq/tare/internal/task"
)

// rescan is how often processes are looked at again that were none to watch: a shell may
// have become a service.
const rescan = 30 * time.Second

// trusted is how long a process is taken for what it was as long as it runs the same file. To
// read its other files at every look took most of what watching many idle services cost.
const trusted = 30 * time.Second

// instance is a process that is watched, for as long as it runs one program.
type instance struct {
	Build
	pid  int
	pod  string // namespace and name; "" if it is in none
	id   task.Identity
	seen time.Time     // when its identity was read
	used time.Duration // CPU in the last interval
	last counted       // in which requests were seen; the zero value: none yet
	gone bool

	counted time.Time // when last was: the beginning of its interval
}

// finder finds the processes to watch. It is safe for concurrent use.
type finder struct {
	pids   []int
	groups []string
	all    bool
	logs   string     // where pods have theirs; "": they are not looked for
	node   *pods.Node // nil until check

	started map[int]uint64 // when the processes did that were named

	identify func(int) (task.Identity, error) // task.Identify, unless a test counts how often

	mu       sync.Mutex
	known    map[int][]*instance   // by number, the latest last; gone ones until they are forgotten
	others   map[int]time.Time     // processes that are none to watch, and since when that is known
	programs map[programFile]Build // the zero value: it is no Go program
}

// programFile tells a program's file from others.
type programFile struct {
	dev, ino uint64
	size     int64
	written  unix.Timespec
}

func newFinder(o Options) *finder {
	f := &finder{pids: o.PIDs, groups: o.Groups, all: o.AllGo, started: map[int]uint64{}, identify: task.Identify,
		known: map[int][]*instance{}, others: map[int]time.Time{}, programs: map[programFile]Build{}}
	if o.Pods {
		f.logs = cmp.Or(o.Logs, pods.Logs)
	}
	return f
}

// any reports whether processes are named at all.
func (f *finder) any() bool {
	return len(f.pids) > 0 || len(f.groups) > 0 || f.all || f.logs != ""
}

// check finds out whether the processes and groups that are named are there.
func (f *finder) check() (err error) {
	if f.logs != "" {
		if f.node, err = pods.Open(f.logs); err != nil {
			return err
		}
	}
	for _, pid := range f.pids {
		in, err := f.look(pid)
		if err != nil {
			return fmt.Errorf("looking at process %d: %w", pid, err)
		}
		f.started[pid] = in.id.Started
	}
	for _, dir := range f.groups {
		if _, err := cgroup.Members(dir); err != nil {
			return err
		}
	}
	return nil
}

// find returns the processes to watch now.
func (f *finder) find() ([]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	numbers, err := f.numbers()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var found []int
	for _, pid := range numbers {
		since, other := f.others[pid]
		if other && now.Sub(since) < rescan {
			continue
		}
		delete(f.others, pid)
		in := f.latest(pid)
		if in.still(now) {
			found = append(found, pid)
			continue
		}
		if in != nil {
			if id, err := f.identify(pid); err == nil && id == in.id {
				in.seen, found = now, append(found, pid)
			} else {
				in.gone = true // the sampler has to miss it once: the next look finds what runs now
			}
			continue
		}
		next, err := f.look(pid)
		if err != nil {
			f.others[pid] = now
			continue
		}
		f.known[pid] = append(f.known[pid], next)
		found = append(found, pid)
	}
	f.markGone(found)
	return found, nil
}

// still reports whether a process was looked at lately, and runs the same file.
func (in *instance) still(now time.Time) bool {
	return in != nil && now.Sub(in.seen) < trusted && in.id.Runs(in.pid)
}

// latest is the process of a number that has not gone; nil if there is none.
func (f *finder) latest(pid int) *instance {
	if all := f.known[pid]; len(all) > 0 && !all[len(all)-1].gone {
		return all[len(all)-1]
	}
	return nil
}

// markGone marks the processes that were not found.
func (f *finder) markGone(found []int) {
	slices.Sort(found)
	for pid := range f.known {
		if _, is := slices.BinarySearch(found, pid); is {
			continue
		}
		if in := f.latest(pid); in != nil {
			in.gone = true
		}
	}
	const most = 1 << 16 // numbers; more have come and gone
	if len(f.others) > most {
		clear(f.others)
	}
}

// numbers are those of the processes that may be watched, each once.
func (f *finder) numbers() ([]int, error) {
	all := slices.DeleteFunc(slices.Clone(f.pids), func(pid int) bool { return f.latest(pid) == nil && !f.runs(pid) })
	for _, dir := range f.groups {
		if members, err := cgroup.Members(dir); err == nil { // else it has gone, and may come again
			all = append(all, members...)
		}
	}
	if f.all || f.node != nil {
		others, err := task.Processes()
		if err != nil {
			return nil, err
		}
		own := os.Getpid()
		all = append(all, slices.DeleteFunc(others, func(pid int) bool { return pid == own })...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// errForeign says that a process runs no Go program.
var errForeign = errors.New("it is no Go program")

// look looks at a process.
func (f *finder) look(pid int) (*instance, error) {
	id, err := f.identify(pid)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = bpf.ErrEnded
		}
		return nil, err
	}
	c, in, err := f.container(pid)
	if err != nil {
		return nil, err
	}
	build, err := f.program(pid)
	if err != nil {
		return nil, err
	}
	if build.ID == "" {
		return nil, errForeign
	}
	if name := c.Service(); name != "" {
		build.Service = name
	} else if name := environment(pid, "OTEL_SERVICE_NAME"); name != "" {
		build.Service = name
	}
	one := &instance{Build: build, pid: pid, id: id, seen: time.Now()}
	if in {
		one.pod = c.Full()
	}
	return one, nil
}

// errBeside says that a process is in no pod.
var errBeside = errors.New("it is in no pod")

// container returns the container of a pod that a process is in, if pods are looked for. It
// is an error if it is in none and nothing else is.
func (f *finder) container(pid int) (c pods.Container, in bool, err error) {
	if f.node == nil {
		return c, false, nil
	}
	groups, err := os.ReadFile(task.Path(pid, "cgroup"))
	if err != nil {
		return c, false, err
	}
	if c, in = f.node.Of(string(groups)); !in && !f.all {
		return c, false, errBeside
	}
	return c, in, nil
}

// program reads what a process's program says of itself, unless it was read before.
func (f *finder) program(pid int) (Build, error) {
	const most = 4096 // programs; a machine that builds begins more
	if len(f.programs) > most {
		clear(f.programs)
	}
	exe := task.Path(pid, "exe")
	file, err := os.Open(exe)
	if err != nil {
		return Build{}, err
	}
	defer file.Close()
	var at unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &at); err != nil {
		return Build{}, err
	}
	of := programFile{uint64(at.Dev), at.Ino, at.Size, at.Mtim}
	if b, ok := f.programs[of]; ok {
		return b, nil
	}
	b := readBuild(file)
	if b.ID != "" {
		name, err := os.Readlink(exe)
		if err != nil {
			return Build{}, err
		}
		b.Service = task.ProgramName(name)
	}
	f.programs[of] = b
	return b, nil
}

// readBuild reads which build of a Go program a file holds; the zero value if it holds none.
func readBuild(file *os.File) Build {
	info, err := buildinfo.Read(file)
	if err != nil {
		return Build{}
	}
	b := Build{Go: info.GoVersion, ID: linkerID(file), module: info.Main.Path, program: info.Path}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if b.Revision != "" {
		b.Revision += dirty
	}
	return b
}

// linkerID is the beginning of the part of the linker's build ID that is of the program's
// content; if it has none, when the file was written and how large it is.
func linkerID(file *os.File) string {
	const header, length = 16, 12 // of the note: sizes, kind and the name Go
	if f, err := elf.NewFile(file); err == nil {
		if note := f.Section(".note.go.buildid"); note != nil {
			if text, err := note.Data(); err == nil && len(text) > header {
				id := strings.TrimRight(string(text[header:]), "\x00")
				id = id[strings.LastIndexByte(id, '/')+1:]
				if len(id) >= length {
					return id[:length]
				}
			}
		}
	}
	info, err := file.Stat()
	if err != nil {
		return "unknown"
	}
	return strconv.FormatInt(info.ModTime().UnixMilli(), 36) + "." + strconv.FormatInt(info.Size(), 36)
}

// environment is a variable that a process began with, if it is fit to be a name.
func environment(pid int, name string) string {
	const longest = 80
	text, err := os.ReadFile(task.Path(pid, "environ"))
	if err != nil {
		return ""
	}
	for entry := range strings.SplitSeq(string(text), "\x00") {
		value, ok := strings.CutPrefix(entry, name+"=")
		if ok && len(value) <= longest && task.Printable(value) == value {
			return value
		}
	}
	return ""
}

// build says what program a process runs, if that can be read.
func (f *finder) build(pid int) (Build, bool) {
	if pid == 0 {
		return Build{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	in, err := f.look(pid)
	if err != nil {
		return Build{}, false
	}
	return in.Build, true
}

// instances are the processes that run, those first that used most CPU.
func (f *finder) instances() []*instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*instance
	for pid := range f.known {
		if in := f.latest(pid); in != nil {
			all = append(all, in)
		}
	}
	slices.SortFunc(all, func(a, b *instance) int {
		if a.used != b.used {
			return int(max(-1, min(1, b.used-a.used)))
		}
		return a.pid - b.pid
	})
	return all
}

// instance is the process that a sampler saw; nil if it is none.
func (f *finder) instance(p *bpf.Process) *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.known[p.PID]
	if len(all) == 0 {
		return nil
	}
	last := len(all) - 1
	if p.Ended && !all[last].gone && last > 0 {
		last-- // the number is another's now
	}
	return all[last]
}

// forget forgets the processes that have gone.
func (f *finder) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for pid, all := range f.known {
		if in := f.latest(pid); in != nil {
			f.known[pid] = []*instance{in}
		} else {
			all[len(all)-1].gone = true
			delete(f.known, pid)
		}
	}
}

// ended reports whether no process that was named runs any more. It reads no file of one that runs
// what it ran: that took a tenth of what watching takes.
func (f *finder) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.pids, func(pid int) bool {
		in := f.latest(pid)
		return in != nil && in.id.Runs(pid) || f.runs(pid)
	})
}

// runs reports whether a process that was named runs, be it another program.
func (f *finder) runs(pid int) bool {
	id, err := f.identify(pid)
	return err == nil && id.Started == f.started[pid]
}

// usage is what this process has used: CPU, and resident memory in bytes.
func usage() (cpu time.Duration, memory uint64) {
	if used, err := task.CPU(os.Getpid()); err == nil {
		cpu = used
	}
	if s, err := task.ReadStat(os.Getpid()); err == nil {
		memory = s.RSS
	}
	return cpu, memory
}
