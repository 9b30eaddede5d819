package arm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// stat is what /proc/PID/stat says of a process. Times are in ticks.
type stat struct {
	pid, parent, group int
	zombie             bool
	minor, major       uint64 // faults, those of reaped children included
	reapedTicks        uint64 // CPU of children that have been waited for
	threads            int
}

var errStat = errors.New("malformed /proc/PID/stat")

// parseStat reads a line of /proc/PID/stat. The second field is the program's
// name in parentheses and may hold anything, parentheses among it.
func parseStat(line []byte) (stat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return stat{}, errStat
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:open])))
	f := strings.Fields(string(line[end+1:]))
	if err != nil || len(f) < 18 {
		return stat{}, errStat
	}
	var n [18]uint64 // the fields from the third on; negative ones stay 0
	for i := 1; i < len(n); i++ {
		n[i], _ = strconv.ParseUint(f[i], 10, 64)
	}
	return stat{
		pid: pid, zombie: f[0] == "Z" || f[0] == "X",
		parent: int(n[1]), group: int(n[2]),
		minor: n[7] + n[8], major: n[9] + n[10],
		reapedTicks: n[13] + n[14], threads: int(n[17]),
	}, nil
}

// processes lists every process that this one may see.
func processes() ([]stat, error) {
	names, err := list("/proc")
	if err != nil {
		return nil, err
	}
	var all []stat
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		line, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // ended since the listing
		}
		s, err := parseStat(line)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// list returns the names in a directory in no order.
func list(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// family returns root, its descendants, and what else is in the process group,
// without zombies and without the group's leader, tare's guard.
func family(root, group int) ([]stat, error) {
	all, err := processes()
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	in := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, s := range all {
			if !in[s.pid] && s.pid != group && (s.group == group || in[s.parent]) {
				in[s.pid], grown = true, true
			}
		}
	}
	var members []stat
	for _, s := range all {
		if in[s.pid] && !s.zombie {
			members = append(members, s)
		}
	}
	return members, nil
}

// groupLives reports whether a process of the group is left.
func groupLives(group int) bool {
	return anyLives(func(s stat) bool { return s.group == group })
}

// anyLives reports whether one of such processes is left. Zombies do not count: they
// hold nothing, and it is for their parent to wait for them.
func anyLives(such func(stat) bool) bool {
	all, err := processes()
	if err != nil {
		return false
	}
	for _, s := range all {
		if such(s) && !s.zombie {
			return true
		}
	}
	return false
}

// strays are an arm, or processes that descend from it, that have left their group,
// such as what a shell with job control starts: no signal to the group reaches them.
type strays []*os.Process

// strays finds those of an arm while their parents live.
func (a *Process) strays() (strays, error) {
	group := a.guard.cmd.Process.Pid
	members, err := family(a.PID(), group)
	if err != nil {
		return nil, err
	}
	var away strays
	for _, m := range members {
		if m.group == group {
			continue
		}
		if p, err := os.FindProcess(m.pid); err == nil { // a handle, whatever the number stands for later
			away = append(away, p)
		}
	}
	return away, nil
}

// kill ends them and waits until they are gone.
func (s strays) kill() error {
	if len(s) == 0 {
		return nil
	}
	killed := map[int]bool{}
	for _, p := range s {
		if p.Kill() == nil { // else it has ended by itself
			killed[p.Pid] = true
		}
		_ = p.Release()
	}
	for deadline := time.Now().Add(reap); anyLives(func(s stat) bool { return killed[s.pid] }); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("what has left the arm's process group does not end, although killed")
		}
	}
	return nil
}

// colon returns the number after "name:" in the form of /proc/PID/status; 0 if
// there is none.
func colon(text []byte, name string) uint64 {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name+":"))
		if !ok {
			continue
		}
		if f := bytes.Fields(rest); len(f) > 0 {
			n, _ := strconv.ParseUint(string(f[0]), 10, 64)
			return n
		}
	}
	return 0
}
