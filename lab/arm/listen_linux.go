package arm

import (
	"slices"

	"github.com/tarehq/tare/lab/arm/listening"
)

// Listening returns the addresses, host:port, on which the arm and its descendants
// listen, the one that it was told first, as [listening.Addresses] does.
func (a *Process) Listening() ([]string, error) {
	if err := a.alive(); err != nil {
		return nil, err
	}
	members, err := family(a.PID(), a.guard.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	all := []int{a.PID()}
	for _, m := range members {
		all = append(all, m.PID)
	}
	found, err := listening.Addresses(all...)
	if i := slices.Index(found, a.addr); i > 0 {
		found = slices.Insert(slices.Delete(found, i, i+1), 0, a.addr)
	}
	return found, err
}
