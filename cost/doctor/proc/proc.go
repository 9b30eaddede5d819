// Package proc reads what Linux reports of a process: what it may use, what it was
// held back by, and the state of its sockets.
//
// Everything comes from /proc and the cgroups' files; nothing is asked of the
// process. Another user's process hides its environment, program and sockets:
// those fields stay empty and Warnings says so. Elsewhere than on Linux every
// reading is an error that wraps [errors.ErrUnsupported].
package proc

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/internal/cgroup"
	"github.com/tarehq/tare/internal/task"
)

// Facts are what was found of one process at one moment.
type Facts struct {
	PID     int
	At      time.Time
	Threads int
	// RunDelay is how long its threads were ready to run but had no CPU, those that ended
	// excluded: the second figure of schedstat.
	RunDelay time.Duration

	CPUs  int // that it may run on
	Quota Quota
	Limit int64 // of its cgroup's memory, in bytes; 0 if there is none
	Free  int64 // memory that the machine has to spare, in bytes

	Environment map[string]string // variables whose names begin with GO
	Build       *Build            // nil if the program is not Go's or not to be read

	Sockets    map[string]int // TCP connections of this process by state
	TimeWait   map[string]int // connections of its network namespace that were opened there and are in time wait, by address and port of the peer: 10 and more
	Dials      int64          // connections that its network namespace has opened
	OwnNetwork bool           // it has a network namespace of its own, at least not ours

	Warnings []error `json:"-"`
}

// Build is how the program was built.
type Build struct {
	Go       string            // such as go1.26.8
	Requires []string          // paths of the modules it was built with
	Settings map[string]string // as `go version -m` shows: DefaultGODEBUG, -trimpath …
}

// Quota is how much CPU a cgroup may use, and how often it was held back.
type Quota = cgroup.Quota

// root is the folder below which the kernel shows processes; tests put another in the
// place of /.
type root string

func (r root) proc() string { return filepath.Join(string(r), "proc") }

// Read reads the facts of a process.
func Read(pid int) (*Facts, error) { return root("/").read(pid) }

func (r root) read(pid int) (*Facts, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("reading the facts of process %d: /proc is Linux's: %w", pid, errors.ErrUnsupported)
	}
	f := &Facts{PID: pid, At: time.Now()}
	stat, err := r.stat(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the facts of process %d: %w", pid, err)
	}
	f.Threads = stat.Threads
	limits, err := cgroup.Read(os.DirFS(string(r)), strconv.Itoa(pid))
	f.Quota, f.Limit = limits.CPU, limits.Memory
	f.note("cgroup", err)
	dir := r.dir(pid)
	f.note("status", f.readStatus(dir))
	f.note("environment", f.readEnvironment(dir))
	f.note("sockets", f.readSockets(dir))
	f.note("network", f.readNetwork(dir, r.proc()))
	f.note("memory", f.readFree(r.proc()))
	f.note("program", f.readBuild(dir))
	f.note("run delay", f.readRunDelay(dir))
	return f, nil
}

func (r root) dir(pid int) string { return filepath.Join(r.proc(), strconv.Itoa(pid)) }

func (r root) stat(pid int) (task.Stat, error) {
	line, err := os.ReadFile(filepath.Join(r.dir(pid), "stat"))
	if err != nil {
		return task.Stat{}, err
	}
	return task.ParseStat(string(line))
}

// ErrNotGo says that a process runs a program that no Go toolchain has built.
var ErrNotGo = errors.New("it is not a Go program")

func (f *Facts) readBuild(dir string) error {
	exe := filepath.Join(dir, "exe")
	info, err := buildinfo.ReadFile(exe)
	var unread *fs.PathError
	switch {
	case err == nil:
		f.Build = newBuild(info)
		return nil
	case errors.As(err, &unread) && !errors.Is(err, fs.ErrNotExist):
		return err
	case errors.As(err, &unread): // the kernel's own threads have none
		return fmt.Errorf("%w: the process has no program: it is the kernel's own, or has ended", ErrNotGo)
	}
	name, err := os.Readlink(exe)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrNotGo, name)
}

// IsGo reports whether a process runs a Go program, or may for all that can be read.
func IsGo(pid int) bool {
	return runtime.GOOS != "linux" || !errors.Is(new(Facts).readBuild(root("/").dir(pid)), ErrNotGo)
}

// Foreign returns an error that wraps ErrNotGo if the process is known not to be
// a Go program.
func (f *Facts) Foreign() error {
	for _, err := range f.Warnings {
		if errors.Is(err, ErrNotGo) {
			return err
		}
	}
	return nil
}

// note keeps an error as a warning.
func (f *Facts) note(what string, err error) {
	if err != nil {
		f.Warnings = append(f.Warnings, fmt.Errorf("reading the %s of process %d: %w", what, f.PID, err))
	}
}

func newBuild(info *buildinfo.BuildInfo) *Build {
	b := &Build{Go: info.GoVersion, Settings: map[string]string{}}
	for _, d := range info.Deps {
		b.Requires = append(b.Requires, d.Path)
	}
	for _, s := range info.Settings {
		b.Settings[s.Key] = s.Value
	}
	return b
}

func (f *Facts) readStatus(dir string) error {
	return eachLine(filepath.Join(dir, "status"), func(line string) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			f.CPUs = countList(strings.TrimSpace(list))
		}
	})
}

func (f *Facts) readFree(proc string) error {
	return eachLine(filepath.Join(proc, "meminfo"), func(line string) {
		if value, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			f.Free = kibibytes(value)
		}
	})
}

func (f *Facts) readRunDelay(dir string) error {
	threads, err := filepath.Glob(filepath.Join(dir, "task/*/schedstat"))
	for _, file := range threads {
		if part := strings.Fields(word(file)); len(part) == 3 { // a thread may have ended meanwhile
			ns, _ := strconv.ParseInt(part[1], 10, 64)
			f.RunDelay += time.Duration(ns)
		}
	}
	return err
}

// MaxProcs works out GOMAXPROCS from what can be seen from outside: unless the program
// sets it itself, it follows from environment, version and CPUs.
func (f *Facts) MaxProcs() (n float64, why string) {
	if v, err := strconv.Atoi(f.Environment["GOMAXPROCS"]); err == nil && v > 0 {
		return float64(v), "from the environment"
	}
	switch b := f.Build; {
	case b != nil && slices.Contains(b.Requires, "go.uber.org/automaxprocs"):
		return max(1, math.Floor(f.Quota.CPUs)), "set by automaxprocs"
	case f.followsQuota():
		return min(float64(f.CPUs), max(2, math.Ceil(f.Quota.CPUs))), "which follows the quota since Go 1.25"
	}
	return float64(f.CPUs), "all CPUs that it may run on"
}

// BeyondQuota reports whether the scheduler has more processors than the quota pays for.
func (f *Facts) BeyondQuota() bool {
	n, _ := f.MaxProcs()
	return n > max(2, math.Ceil(f.Quota.CPUs))
}

// followsQuota reports whether the runtime sets GOMAXPROCS by the quota.
func (f *Facts) followsQuota() bool {
	if f.Build == nil {
		return false
	}
	settings := f.Build.Settings["DefaultGODEBUG"] + "," + f.Environment["GODEBUG"] // the latter rules
	at := strings.LastIndex(settings, "containermaxprocs=")
	if at >= 0 {
		return strings.HasPrefix(settings[at:], "containermaxprocs=1")
	}
	minor := strings.TrimPrefix(f.Build.Go, "go1.") // 26.8, 27rc1, 28-devel_0123456
	minor = minor[:len(minor)-len(strings.TrimLeft(minor, "0123456789"))]
	n, err := strconv.Atoi(minor)
	return err == nil && n >= 25
}

// Spare is a size for the heap that leaves the machine, or the cgroup, three quarters of
// its memory; 1 GiB at most, and 0 if neither is known.
func (f *Facts) Spare() float64 {
	have := f.Free
	if f.Limit > 0 {
		have = min(have, f.Limit)
	}
	return min(float64(have)/4, 1<<30)
}

// MemoryLimit is GOMEMLIMIT, in bytes, read as the runtime does: a number and B, KiB, MiB,
// GiB or TiB.
func (f *Facts) MemoryLimit() (bytes float64, ok bool) {
	shift := map[string]uint{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
	text := f.Environment["GOMEMLIMIT"]
	digits := strings.TrimRight(text, "BKMGTi")
	s, ok := shift[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 63)
	if !ok || err != nil {
		return 0, false
	}
	return float64(n) * float64(uint64(1)<<s), true
}

// kibibytes reads "  1234 kB" as bytes.
func kibibytes(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
	return n << 10
}

// countList counts the members of a list such as "0-3,8".
func countList(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(low)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			b, _ = strconv.Atoi(high)
		}
		n += max(0, b-a+1)
	}
	return n
}

func (f *Facts) readEnvironment(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return err
	}
	f.Environment = map[string]string{}
	for entry := range strings.SplitSeq(string(text), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, "GO") {
			f.Environment[name] = value
		}
	}
	return nil
}

// word reads a file of one line; "" if there is none.
func word(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// eachLine calls take with each line of a small file.
func eachLine(path string, take func(line string)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		take(strings.TrimSuffix(line, "\n"))
	}
	return nil
}
