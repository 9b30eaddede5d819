//go:build !linux

package arm

import "strconv"

// Listening returns where the arm was told to listen, or the port that is named: the kernel
// is asked on Linux alone.
func (a *Process) Listening() ([]string, error) {
	if err := a.alive(); err != nil {
		return nil, err
	}
	if _, err := strconv.Atoi(a.listen); err == nil {
		return []string{"127.0.0.1:" + a.listen}, nil
	}
	return []string{a.addr}, nil
}
