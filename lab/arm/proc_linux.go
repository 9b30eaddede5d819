package arm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/tarehq/tare/internal/task"
)

// processes lists every process that this one may see.
func processes() ([]task.Stat, error) {
	numbers, err := task.Processes()
	if err != nil {
		return nil, err
	}
	var all []task.Stat
	for _, pid := range numbers {
		s, err := task.ReadStat(pid)
		if _, gone := errors.AsType[*fs.PathError](err); gone {
			continue // ended since the listing
		}
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
func family(root, group int) ([]task.Stat, error) {
	all, err := processes()
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	in := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, s := range all {
			if !in[s.PID] && s.PID != group && (s.Group == group || in[s.Parent]) {
				in[s.PID], grown = true, true
			}
		}
	}
	var members []task.Stat
	for _, s := range all {
		if in[s.PID] && !s.Ended() {
			members = append(members, s)
		}
	}
	return members, nil
}

// groupLives reports whether a process of the group is left.
func groupLives(group int) bool {
	return anyLives(func(s task.Stat) bool { return s.Group == group })
}

// anyLives reports whether one of such processes is left. Zombies do not count: they
// hold nothing, and it is for their parent to wait for them.
func anyLives(such func(task.Stat) bool) bool {
	all, err := processes()
	if err != nil {
		return false
	}
	for _, s := range all {
		if such(s) && !s.Ended() {
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
		if m.Group == group {
			continue
		}
		if p, err := os.FindProcess(m.PID); err == nil { // a handle, whatever the number stands for later
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
	for deadline := time.Now().Add(reap); anyLives(func(s task.Stat) bool { return killed[s.PID] }); time.Sleep(time.Millisecond) {
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
