package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Idle says why a process may have nothing to do: it is stopped, or the service is one
// that it has started. It is nil if neither is seen.
func Idle(pid int) error { return root{"/proc", ""}.idle(pid) }

func (r root) idle(pid int) error {
	dir := filepath.Join(r.proc, strconv.Itoa(pid))
	line, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return nil
	}
	state := strings.TrimSpace(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if strings.HasPrefix(strings.ToUpper(state), "T") {
		return fmt.Errorf("process %d is stopped, by a signal or by a debugger", pid)
	}
	lists, err := filepath.Glob(filepath.Join(dir, "task", "*", "children"))
	if err != nil {
		return nil
	}
	var started []string
	for _, list := range lists {
		for child := range strings.FieldsSeq(word(filepath.Dir(list), "children")) {
			started = append(started, child+" "+word(filepath.Join(r.proc, child), "comm"))
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
