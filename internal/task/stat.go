package task

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Tick is the unit of the times in /proc/PID/stat: USER_HZ, 100 a second on every
// architecture that Go has.
const Tick = 10 * time.Millisecond

// Stat is what /proc/PID/stat says of a process.
type Stat struct {
	PID, Parent, Group int
	Name               string // of the program, cut to 15 bytes; any characters
	State              byte   // R runs, S sleeps, T and t are stopped, Z and X have ended
	Threads            int
	RSS                uint64 // resident memory, bytes

	MinorFaults, MajorFaults uint64        // those of reaped children included
	CPU                      time.Duration // counted in ticks
	ReapedCPU                time.Duration // of children that have been waited for

	Started uint64 // since boot, in ticks: tells it from a later process of the same number
	Flags   uint64 // PF_… of linux/sched.h
	Stack   uint64 // where its stack begins, mostly another place after exec; 0 if hidden
}

// Ended reports whether the process only waits for its parent to notice its end.
func (s *Stat) Ended() bool { return s.State == 'Z' || s.State == 'X' }

// Processes returns the numbers of all processes that this one may see, in no order.
func Processes() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}

// ReadStat reads what the kernel says of a process now.
func ReadStat(pid int) (Stat, error) {
	line, err := os.ReadFile(Path(pid, "stat"))
	if err != nil {
		return Stat{}, err
	}
	s, err := ParseStat(string(line))
	if err != nil {
		return Stat{}, fmt.Errorf("reading %s: %w", Path(pid, "stat"), err)
	}
	return s, nil
}

// ParseStat reads a line of /proc/PID/stat. The second field is the program's name in
// parentheses and may hold anything, parentheses among it.
//
// Note: prometheus/procfs reads the same, but not where the stack begins, which alone
// tells a program from the one that it runs next, and not from a text.
func ParseStat(line string) (Stat, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return Stat{}, errors.New("no name in parentheses")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line[:open]))
	if err != nil {
		return Stat{}, err
	}
	f := strings.Fields(line[end+1:])
	const started, stack = 19, 25
	if len(f) <= started || len(f[0]) != 1 {
		return Stat{}, fmt.Errorf("%d fields behind the name, want at least %d, the state first", len(f), started+1)
	}
	var n [stack + 1]int64 // the fields from the third on
	for i := 1; i < min(len(n), len(f)); i++ {
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return Stat{}, err // a limit that is none is out of range
		}
	}
	return Stat{
		PID: pid, Name: line[open+1 : end], State: f[0][0],
		Parent: int(n[1]), Group: int(n[2]), Flags: uint64(n[6]),
		MinorFaults: uint64(n[7] + n[8]), MajorFaults: uint64(n[9] + n[10]),
		CPU: time.Duration(n[11]+n[12]) * Tick, ReapedCPU: time.Duration(n[13]+n[14]) * Tick,
		Threads: int(n[17]), RSS: uint64(n[21]) * uint64(os.Getpagesize()), Started: uint64(n[started]), Stack: uint64(n[stack]),
	}, nil
}
