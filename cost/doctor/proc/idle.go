package proc

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Idle says why a process may have nothing to do: it is stopped, or the service is one
// that it has started. It is nil if neither is seen.
func Idle(pid int) error { return root("/").idle(pid) }

func (r root) idle(pid int) error {
	stat, err := r.stat(pid)
	if err != nil {
		return nil
	}
	if stat.State == 'T' || stat.State == 't' {
		return fmt.Errorf("process %d is stopped, by a signal or by a debugger", pid)
	}
	lists, err := filepath.Glob(filepath.Join(r.dir(pid), "task", "*", "children"))
	if err != nil {
		return nil
	}
	var started []string
	for _, list := range lists {
		for child := range strings.FieldsSeq(word(list)) {
			started = append(started, child+" "+word(filepath.Join(r.proc(), child, "comm")))
		}
	}
	if len(started) == 0 {
		return nil
	}
	const most = 5
	if more := len(started) - most; more > 0 {
		started = append(started[:most], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("process %d has started others, of which the service may be one: %s", pid, strings.Join(started, ", "))
}
